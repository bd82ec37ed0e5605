// Checks dtypes and shapes of expressions.
#include "trainer/expression/expression_check.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace tycho {
namespace {

/// Types one node, given the types of those before it.
class Checker {
 public:
  Checker(const Expression& expression, size_t at, const std::vector<NodeType>& types)
      : expression_(expression), types_(types), at_(at) {}

  NodeType run() const { return type_of(expression_.nodes[at_]); }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ExitCode::kRecipe, "{}: {}", place_of(expression_, at_),
         fmt::format(format, std::forward<Args>(args)...));
  }

  static std::string text(const NodeType& type) {
    if (type.scalar) return "a scalar";
    if (type.shape.is_flat()) return "elements without a shape";
    return fmt::format("[{}, {}]", type.shape.rows, type.shape.columns);
  }

  const NodeType& argument(const Node& node, size_t i) const {
    return types_[static_cast<size_t>(node.arguments[i])];
  }

  void expect_kind(const Node& node, size_t i, bool boolean) const {
    if (argument(node, i).boolean == boolean) return;
    if (boolean) refuse("expected a boolean as argument {}, such as x:gt(y), got a number", i + 1);
    refuse("expected a number as argument {}, got a boolean; write  t.where(condition, 1, 0)", i + 1);
  }

  /// Returns the type of two values that meet.
  NodeType meet(const NodeType& a, const NodeType& b) const {
    NodeType out{.scalar = a.scalar && b.scalar, .shape = a.shape};
    if (a.scalar) out.shape = b.shape;
    if (a.scalar || b.scalar || a.shape == b.shape) return out;
    const MatrixShape one{1, 1};
    if (a.shape == one || b.shape == one) {
      out.shape = a.shape == one ? b.shape : a.shape;
      return out;
    }
    const auto fits = [](int64_t x, int64_t y) { return x == y || x == 1 || y == 1; };
    if (a.shape.is_flat() || b.shape.is_flat() || !fits(a.shape.rows, b.shape.rows) ||
        !fits(a.shape.columns, b.shape.columns))
      refuse(
          "expected shapes that broadcast, got {} and {}: rows and columns must be equal or 1, and state "
          "\"like\" has the parameter's",
          text(a), text(b));
    out.shape = {std::max(a.shape.rows, b.shape.rows), std::max(a.shape.columns, b.shape.columns)};
    return out;
  }

  NodeType elementwise(const Node& node, OpKind kind) const {
    const int count = operation(node.op).arguments;
    const bool choice = kind == OpKind::kChoice;
    NodeType out = argument(node, 0);
    for (int i = 0; i < count; ++i) {
      const auto index = static_cast<size_t>(i);
      if (choice && i == 2 && argument(node, 1).boolean != argument(node, 2).boolean)
        refuse("expected two numbers or two booleans to choose from, got one of each");
      if (!choice || i == 0) expect_kind(node, index, kind == OpKind::kLogic || choice);
      out = meet(out, argument(node, index));
    }
    if (node.op == Op::kEvery && !argument(node, 0).scalar)
      refuse("expected a condition on scalars, such as the step, got one on elements");
    out.boolean = choice ? argument(node, 1).boolean : kind != OpKind::kArithmetic;
    return out;
  }

  /// Returns the argument's shape. Refuses scalars and flat values.
  MatrixShape matrix(const Node& node, size_t i) const {
    expect_kind(node, i, false);
    const NodeType& type = argument(node, i);
    if (type.scalar || type.shape.is_flat())
      refuse("expected a matrix as argument {}, got {}{}", i + 1, text(type),
             type.scalar ? "" : ": activations, losses and initial values see one element at a time");
    return type.shape;
  }

  NodeType reduced(const Node& node) const {
    const bool whole = node.over == ReducedOver::kMatrix || node.over == ReducedOver::kTensor;
    if (whole && !argument(node, 0).scalar && argument(node, 0).shape.is_flat()) {
      expect_kind(node, 0, false);
      return {.shape = {1, 1}};
    }
    const MatrixShape shape = matrix(node, 0);
    if (whole) return {.shape = {1, 1}};
    if (node.over == ReducedOver::kRow) return {.shape = {shape.rows, 1}};
    return {.shape = {1, shape.columns}};
  }

  NodeType of_matrix(const Node& node) const {
    const MatrixShape a = matrix(node, 0);
    switch (node.op) {
      case Op::kMm: {
        const MatrixShape b = matrix(node, 1);
        if (a.columns != b.rows)
          refuse("expected as many columns on the left as rows on the right, got [{}, {}] and [{}, {}]",
                 a.rows, a.columns, b.rows, b.columns);
        return {.shape = {a.rows, b.columns}};
      }
      case Op::kTranspose: return {.shape = {a.columns, a.rows}};
      case Op::kTake: {
        const MatrixShape order = matrix(node, 1);
        if (order.rows != 1)
          refuse("expected the columns to take as [1, n], got {}", text(argument(node, 1)));
        return {.shape = {a.rows, order.columns}};
      }
      case Op::kArgsort:
        if (a.rows != 1) refuse("expected one row to sort, got {}", text(argument(node, 0)));
        return {.shape = a};
      case Op::kQr: return {.shape = {a.rows, std::min(a.rows, a.columns)}};
      default:
        if (a.rows != a.columns) refuse("expected a square matrix, got {}", text(argument(node, 0)));
        return {.shape = node.op == Op::kEighValues ? MatrixShape{1, a.columns} : a};
    }
  }

  NodeType type_of(const Node& node) const {
    const OpKind kind = operation(node.op).kind;
    if (node.op == Op::kNumber) return {.scalar = true};
    if (kind == OpKind::kSource) {
      const ExpressionInput& input = expression_.inputs[static_cast<size_t>(node.input)];
      return {.scalar = input.scalar, .shape = input.shape};
    }
    if (kind == OpKind::kReduction) return reduced(node);
    if (kind == OpKind::kMatrix) return of_matrix(node);
    if (kind == OpKind::kShape) {
      expect_kind(node, 0, false), expect_kind(node, 1, false);
      const NodeType out = meet(argument(node, 0), argument(node, 1));
      if (out.scalar != argument(node, 1).scalar || !(out.shape == argument(node, 1).shape))
        refuse("expected a value that broadcasts to {}, got {}", text(argument(node, 1)),
               text(argument(node, 0)));
      return out;
    }
    return elementwise(node, kind);
  }

  const Expression& expression_;
  const std::vector<NodeType>& types_;
  size_t at_;
};

}  // namespace

NodeType type_of_node(const Expression& expression, size_t node, const std::vector<NodeType>& earlier) {
  return Checker(expression, node, earlier).run();
}

std::vector<NodeType> check_expression(const Expression& expression) {
  std::vector<NodeType> types;
  for (size_t i = 0; i < expression.nodes.size(); ++i) types.push_back(type_of_node(expression, i, types));
  for (const ExpressionOutput& output : expression.outputs)
    if (types[static_cast<size_t>(output.node)].boolean)
      fail(ExitCode::kRecipe,
           "{}: expected numbers for the output '{}', got booleans; write  t.where(condition, 1, 0)",
           place_of(expression, static_cast<size_t>(output.node)), output.name);
  return types;
}

}  // namespace tycho
