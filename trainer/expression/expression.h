// An expression: the operations that a function of a recipe does on its arguments, as a list.
//
// A node whose arguments are all scalars is a scalar: a double, computed on the host. Others are fp32
// elements; a scalar that meets elements is rounded to fp32 once. Nothing is contracted: a product is rounded
// before it is added, except by fma. min and max propagate NaN, as torch.minimum does; sign(0) is 0 and
// sign(NaN) NaN; rsqrt(x) is 1 / sqrt(x), both rounded; pow is torch.pow; clamp(x, low, high) is
// min(max(x, low), high) with torch.clamp's gradient.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/expression/operations.h"

namespace tycho {

// Limits, so that a hostile function of a recipe ends with an error.
inline constexpr size_t kMostNodes = 4096, kMostInputs = 256, kMostOutputs = 256;
inline constexpr int64_t kMostColumns = int64_t{1} << 31;  // rows, too

/// One operation; its arguments are nodes that stand before it.
struct Node {
  Op op = Op::kNumber;
  std::array<int32_t, 3> arguments = {-1, -1, -1};
  double number = 0;  // of kNumber
  int32_t input = 0;  // index of kInput
  ReducedOver over = ReducedOver::kNothing;

  /// Compares numbers by their bits, so that NaN equals itself and 0 is not -0.
  bool operator==(const Node& other) const {
    return op == other.op && arguments == other.arguments && input == other.input && over == other.over &&
           std::bit_cast<uint64_t>(number) == std::bit_cast<uint64_t>(other.number);
  }
};

/// Rows and columns of elements. Flat values, which have the elements of a range and no known number of them,
/// have 0 of both.
struct MatrixShape {
  int64_t rows = 0, columns = 0;

  bool is_flat() const { return rows == 0; }
  bool operator==(const MatrixShape&) const = default;
};

struct ExpressionInput {
  std::string name;
  bool scalar = false;  // a number of the run: a hyperparameter, the step
  MatrixShape shape;    // of elements

  bool operator==(const ExpressionInput&) const = default;
};

struct ExpressionOutput {
  std::string name;
  int32_t node = 0;

  bool operator==(const ExpressionOutput&) const = default;
};

struct Expression {
  std::vector<Node> nodes;
  std::vector<ExpressionInput> inputs;
  std::vector<ExpressionOutput> outputs;
  std::vector<std::string> lines;  // "file:line" of each node, or empty; for messages only

  /// Compares all but the lines.
  bool operator==(const Expression& other) const {
    return nodes == other.nodes && inputs == other.inputs && outputs == other.outputs;
  }
};

/// Returns the row of kOperations.
constexpr const Operation& operation(Op op) { return kOperations[static_cast<size_t>(op)]; }

/// Returns the operation of that name, or nothing.
std::optional<Op> operation_named(std::string_view name);

/// Returns "[expression] recipes/x.lua:12: mul", or, without lines, "[expression] node 7: mul".
std::string place_of(const Expression& expression, size_t node);

/// Returns the index of the input or output of that name. Throws Error when there is none.
size_t input_named(const Expression& expression, std::string_view name);
size_t output_named(const Expression& expression, std::string_view name);

}  // namespace tycho
