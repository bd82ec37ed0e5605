# Models against autograd.
tycho_test(models_test TORCH LIBS models SOURCES trainer/models/llama_oracle.cpp trainer/models/model_test.cpp)
