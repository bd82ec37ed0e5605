# Parameters and arithmetic of models.
tycho_test(layout_test LIBS layout SOURCES trainer/layout/gpu_attention_test.cpp trainer/layout/model_layout_test.cpp
  trainer/layout/unit_layout_test.cpp trainer/layout/unit_shards_test.cpp)
