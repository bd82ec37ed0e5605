# Parameters and arithmetic of models.
tycho_test(layout_test LIBS layout SOURCES trainer/layout/adapters_test.cpp trainer/layout/coded_unit_test.cpp trainer/layout/cp_part_test.cpp trainer/layout/fp8_layers_test.cpp trainer/layout/gpu_attention_test.cpp trainer/layout/model_layout_test.cpp
  trainer/layout/stages_test.cpp trainer/layout/sum_tree_test.cpp trainer/layout/tp_parts_test.cpp trainer/layout/unit_layout_test.cpp trainer/layout/unit_shards_test.cpp)
