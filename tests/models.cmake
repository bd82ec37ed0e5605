# Models against autograd.
tycho_test(models_test TORCH LIBS models SOURCES trainer/models/decoder_oracle.cpp trainer/models/model_cases.cpp trainer/models/model_test.cpp)
