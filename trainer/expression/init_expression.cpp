// Checks initial values that a recipe defines.
#include "trainer/expression/init_expression.h"

#include <algorithm>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/expression/expression_check.h"
#include "trainer/expression/expression_json.h"

namespace tycho {

Expression init_expression(const Json& function) {
  Expression read = read_expression(function);
  check_expression(read);
  for (const ExpressionInput& input : read.inputs)
    TYCHO_CHECK(std::find(kInitInputs.begin(), kInitInputs.end(), input.name) != kInitInputs.end() &&
                    !input.scalar && input.shape.is_flat(),
                "[init] expected numbers of an element such as normal and uniform, got {}", input.name);
  TYCHO_CHECK(read.outputs.size() == 1 && read.outputs[0].name == kInitOutput,
              "[init] expected one value, got {} outputs", read.outputs.size());
  for (const Node& node : read.nodes)
    TYCHO_CHECK(operation(node.op).kind != OpKind::kReduction && operation(node.op).kind != OpKind::kMatrix,
                "[init] expected operations on one element, got {}", operation(node.op).name);
  return read;
}

}  // namespace tycho
