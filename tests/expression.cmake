# Mathematics of recipes as lists of operations.
tycho_test(expression_test LIBS expression SOURCES
  trainer/expression/derivative_test.cpp trainer/expression/expression_check_test.cpp trainer/expression/expression_json_test.cpp
  trainer/expression/expression_text_test.cpp trainer/expression/gpu_text_test.cpp trainer/expression/loss_expression_test.cpp trainer/expression/random_expression.cpp trainer/expression/reference.cpp trainer/expression/reference_test.cpp
  trainer/expression/simplify_test.cpp trainer/expression/update_phases_test.cpp)
