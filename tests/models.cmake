# Models against autograd, and shared by ranks against one rank.
tycho_test(models_test TORCH LIBS models SOURCES trainer/models/decoder_oracle.cpp trainer/models/decoder_test.cpp trainer/models/lent_gradients_test.cpp
  trainer/models/model_cases.cpp trainer/models/model_width_test.cpp trainer/models/model_test.cpp trainer/models/token_loss_test.cpp)
tycho_test(sharded_model_test TORCH LIBS models SOURCES trainer/models/model_cases.cpp trainer/models/sharded_model_test.cpp)
tycho_test(coded_gather_test TORCH LIBS models SOURCES trainer/models/coded_gather_test.cpp trainer/models/model_cases.cpp)
tycho_test(tensor_parallel_test TORCH LIBS models SOURCES trainer/models/fp8_linear_test.cpp trainer/models/model_cases.cpp trainer/models/shared_model.cpp
  trainer/models/query_key_norm_test.cpp trainer/models/shared_vocabulary_test.cpp trainer/models/tensor_parallel_test.cpp)
tycho_test(context_parallel_test TORCH LIBS models SOURCES trainer/models/model_cases.cpp trainer/models/shared_model.cpp
  trainer/models/context/context_region_test.cpp trainer/models/context_parallel_test.cpp)
tycho_test(pipeline_model_test TORCH LIBS models plan SOURCES trainer/models/model_cases.cpp trainer/models/pipeline_test.cpp trainer/models/shared_model.cpp)
# Ranks are threads that wait for each other: many times slower on a machine that is busy.
set_tests_properties(tensor_parallel_test context_parallel_test pipeline_model_test PROPERTIES TIMEOUT 900)
