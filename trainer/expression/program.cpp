// Programs, and their scalars.
#include "trainer/expression/program.h"

#include <algorithm>
#include <bit>

#include "trainer/base/error.h"
#include "trainer/expression/arithmetic.h"
#include "trainer/expression/simplify.h"

namespace tycho {

Program::Program(const Expression& expression) {
  check_expression(expression);
  expression_ = simplify(expression);
  types_ = check_expression(expression_);
  tiles_ = compile_tiles(expression_);
  for (const ExpressionInput& input : expression_.inputs)
    if (input.scalar) scalar_inputs_.push_back(input.name);
}

std::vector<double> Program::scalars(const std::vector<double>& inputs) const {
  TYCHO_CHECK(inputs.size() == scalar_inputs_.size(), "[program] expected {} scalar inputs, got {}",
              scalar_inputs_.size(), inputs.size());
  std::vector<double> by_input, values(expression_.nodes.size());
  for (size_t i = 0, next = 0; i < expression_.inputs.size(); ++i)
    by_input.push_back(expression_.inputs[i].scalar ? inputs[next++] : 0.0);
  for (size_t i = 0; i < expression_.nodes.size(); ++i) {
    const Node& node = expression_.nodes[i];
    if (!types_[i].scalar) continue;
    if (node.op == Op::kNumber) values[i] = node.number;
    if (node.op == Op::kInput) values[i] = by_input[static_cast<size_t>(node.input)];
    if (operation(node.op).kind == OpKind::kSource) continue;
    double x[3] = {};
    for (size_t k = 0; k < static_cast<size_t>(operation(node.op).arguments); ++k)
      x[k] = values[static_cast<size_t>(node.arguments[k])];
    values[i] = apply(node.op, Operands<double>{x[0], x[1], x[2]});
  }
  return values;
}

std::vector<float> Program::constants(const std::vector<double>& scalars) const {
  std::vector<float> out;
  for (const int32_t node : tiles_.constants) {
    const double value = scalars.at(static_cast<size_t>(node));
    const bool boolean = types_[static_cast<size_t>(node)].boolean;
    out.push_back(boolean ? std::bit_cast<float>(value != 0 ? ~uint32_t{0} : uint32_t{0})
                          : static_cast<float>(value));
  }
  return out;
}

std::optional<double> Program::scalar_output(std::string_view name,
                                             const std::vector<double>& scalars) const {
  const auto node = static_cast<size_t>(expression_.outputs[output_named(expression_, name)].node);
  const bool is_array = std::any_of(tiles_.arrays.begin(), tiles_.arrays.end(),
                                    [&](const ProgramArray& array) { return array.name == name; });
  if (is_array) return std::nullopt;
  return scalars.at(node);
}

TileProgram Program::tiles(const std::vector<float>& constants) const {
  return {.instructions = tiles_.instructions.data(),
          .num_instructions = static_cast<int32_t>(tiles_.instructions.size()),
          .num_arrays = static_cast<int32_t>(tiles_.arrays.size()),
          .num_temporaries = tiles_.num_temporaries,
          .num_constants = static_cast<int32_t>(constants.size()),
          .constants = constants.data()};
}

}  // namespace tycho
