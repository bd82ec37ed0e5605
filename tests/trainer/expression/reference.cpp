// Evaluates expressions one node after the other.
#include "tests/trainer/expression/reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trainer/base/error.h"
#include "trainer/expression/arithmetic.h"
#include "trainer/expression/expression_check.h"

namespace tycho {
namespace {

constexpr double kMostWork = 1 << 26;  // elements and products

class Evaluation {
 public:
  Evaluation(const Expression& expression, const std::vector<NodeValues>& inputs, Arithmetic arithmetic)
      : expression_(expression),
        inputs_(inputs),
        arithmetic_(arithmetic),
        types_(check_expression(expression)) {
    check_inputs();
  }

  std::vector<NodeValues> run() {
    for (at_ = 0; at_ < expression_.nodes.size(); ++at_) values_.push_back(value_of(expression_.nodes[at_]));
    std::vector<NodeValues> out;
    for (const ExpressionOutput& output : expression_.outputs)
      out.push_back(values_[static_cast<size_t>(output.node)]);
    return out;
  }

 private:
  void check_inputs() {
    if (inputs_.size() != expression_.inputs.size())
      fail(ExitCode::kRecipe, "[expression] expected values of {} inputs, got {}", expression_.inputs.size(),
           inputs_.size());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const ExpressionInput& input = expression_.inputs[i];
      MatrixShape shape = input.scalar ? MatrixShape{1, 1} : input.shape;
      if (shape.is_flat()) shape = flat_ = {1, flat_.is_flat() ? inputs_[i].shape.columns : flat_.columns};
      if (!(inputs_[i].shape == shape) ||
          static_cast<int64_t>(inputs_[i].numbers.size()) != shape.rows * shape.columns)
        fail(ExitCode::kRecipe,
             "[expression] expected [{}, {}] for the input '{}', got [{}, {}] of {} numbers", shape.rows,
             shape.columns, input.name, inputs_[i].shape.rows, inputs_[i].shape.columns,
             inputs_[i].numbers.size());
    }
  }

  void count_work(double more) {
    work_ += more;
    if (work_ > kMostWork)
      fail(ExitCode::kRecipe, "{}: expected at most {:.0f} elements and products, got more",
           place_of(expression_, at_), kMostWork);
  }

  NodeValues empty(MatrixShape shape) {
    count_work(static_cast<double>(shape.rows) * static_cast<double>(shape.columns));
    return {shape, std::vector<double>(static_cast<size_t>(shape.rows * shape.columns))};
  }

  double rounded(double x) const { return arithmetic_ == Arithmetic::kFp32 ? static_cast<float>(x) : x; }

  const NodeValues& argument(const Node& node, size_t i) const {
    return values_[static_cast<size_t>(node.arguments[i])];
  }

  static double element(const NodeValues& values, int64_t row, int64_t column) {
    const int64_t r = values.shape.rows == 1 ? 0 : row, c = values.shape.columns == 1 ? 0 : column;
    return values.numbers[static_cast<size_t>(r * values.shape.columns + c)];
  }

  NodeValues elementwise(const Node& node) {
    const bool scalar = types_[at_].scalar;
    MatrixShape shape = scalar ? MatrixShape{1, 1} : types_[at_].shape;
    if (shape.is_flat()) shape = flat_;
    NodeValues out = empty(shape);
    const auto count = static_cast<size_t>(operation(node.op).arguments);
    const bool scalar_exponent = count > 1 && types_[static_cast<size_t>(node.arguments[1])].scalar;
    for (int64_t row = 0, i = 0; row < shape.rows; ++row)
      for (int64_t column = 0; column < shape.columns; ++column, ++i) {
        double x[3] = {};
        for (size_t k = 0; k < count; ++k) x[k] = element(argument(node, k), row, column);
        double& result = out.numbers[static_cast<size_t>(i)];
        if (scalar || arithmetic_ == Arithmetic::kDouble)
          result = apply(node.op, Operands<double>{x[0], x[1], x[2], !scalar && scalar_exponent});
        else
          result = apply(node.op, Operands<float>{static_cast<float>(x[0]), static_cast<float>(x[1]),
                                                  static_cast<float>(x[2]), scalar_exponent});
      }
    return out;
  }

  static double reduced(Op op, double total, double x) {
    if (op == Op::kLargest) return apply(Op::kMax, Operands<double>{total, x});
    if (op == Op::kSmallest) return apply(Op::kMin, Operands<double>{total, x});
    return total + x;
  }

  NodeValues reduction(const Node& node) {
    const NodeValues& x = argument(node, 0);
    const bool keeps_rows = node.over == ReducedOver::kRow, keeps_columns = node.over == ReducedOver::kColumn;
    NodeValues out = empty({keeps_rows ? x.shape.rows : 1, keeps_columns ? x.shape.columns : 1});
    count_work(static_cast<double>(x.numbers.size()));
    std::vector<bool> begun(out.numbers.size());
    for (int64_t row = 0; row < x.shape.rows; ++row)
      for (int64_t column = 0; column < x.shape.columns; ++column) {
        const auto to = static_cast<size_t>(keeps_rows ? row : keeps_columns ? column : 0);
        const double value = element(x, row, column);
        out.numbers[to] = begun[to] ? reduced(node.op, out.numbers[to], value) : value;
        begun[to] = true;
      }
    const double count = static_cast<double>(x.numbers.size()) / static_cast<double>(out.numbers.size());
    for (double& number : out.numbers) number = rounded(node.op == Op::kMean ? number / count : number);
    return out;
  }

  NodeValues product(const Node& node) {
    const NodeValues &a = argument(node, 0), &b = argument(node, 1);
    NodeValues out = empty({a.shape.rows, b.shape.columns});
    count_work(static_cast<double>(out.numbers.size()) * static_cast<double>(a.shape.columns));
    for (int64_t row = 0, i = 0; row < out.shape.rows; ++row)
      for (int64_t column = 0; column < out.shape.columns; ++column, ++i) {
        double total = 0;
        for (int64_t k = 0; k < a.shape.columns; ++k)
          total += a.numbers[static_cast<size_t>(row * a.shape.columns + k)] *
                   b.numbers[static_cast<size_t>(k * b.shape.columns + column)];
        out.numbers[static_cast<size_t>(i)] = rounded(total);
      }
    return out;
  }

  NodeValues transposed(const NodeValues& x) {
    NodeValues out = empty({x.shape.columns, x.shape.rows});
    for (int64_t row = 0; row < x.shape.rows; ++row)
      for (int64_t column = 0; column < x.shape.columns; ++column)
        out.numbers[static_cast<size_t>(column * x.shape.rows + row)] =
            x.numbers[static_cast<size_t>(row * x.shape.columns + column)];
    return out;
  }

  /// Returns the columns of x in the given order.
  NodeValues taken(const NodeValues& x, const NodeValues& order) {
    NodeValues out = empty({x.shape.rows, order.shape.columns});
    for (int64_t column = 0; column < order.shape.columns; ++column) {
      const double from = order.numbers[static_cast<size_t>(column)];
      if (!(from >= 0 && from < static_cast<double>(x.shape.columns)) || from != std::floor(from))
        fail(ExitCode::kRecipe, "{}: expected columns from 0 to {}, got {}", place_of(expression_, at_),
             x.shape.columns - 1, from);
      for (int64_t row = 0; row < x.shape.rows; ++row)
        out.numbers[static_cast<size_t>(row * order.shape.columns + column)] =
            x.numbers[static_cast<size_t>(row * x.shape.columns + static_cast<int64_t>(from))];
    }
    return out;
  }

  /// Returns the columns of a row from the smallest number to the largest, then NaN; equal ones keep their
  /// order.
  NodeValues sorted_order(const NodeValues& x) {
    NodeValues out = empty(x.shape);
    std::iota(out.numbers.begin(), out.numbers.end(), 0.0);
    std::stable_sort(out.numbers.begin(), out.numbers.end(), [&](double i, double j) {
      const double a = x.numbers[static_cast<size_t>(i)], b = x.numbers[static_cast<size_t>(j)];
      return a < b || (b != b && a == a);
    });
    return out;
  }

  NodeValues value_of(const Node& node) {
    if (node.op == Op::kNumber) return {{1, 1}, {node.number}};
    if (node.op == Op::kInput) {
      NodeValues input = inputs_[static_cast<size_t>(node.input)];
      if (!types_[at_].scalar)
        for (double& number : input.numbers) number = rounded(number);
      return input;
    }
    switch (node.op) {
      case Op::kMm: return product(node);
      case Op::kTranspose: return transposed(argument(node, 0));
      case Op::kTake: return taken(argument(node, 0), argument(node, 1));
      case Op::kArgsort: return sorted_order(argument(node, 0));
      default: break;
    }
    if (operation(node.op).kind == OpKind::kReduction) return reduction(node);
    if (operation(node.op).kind != OpKind::kMatrix) return elementwise(node);
    fail(ExitCode::kRecipe, "{}: expected an operation that needs no LibTorch", place_of(expression_, at_));
  }

  const Expression& expression_;
  const std::vector<NodeValues>& inputs_;
  const Arithmetic arithmetic_;
  const std::vector<NodeType> types_;
  std::vector<NodeValues> values_;
  MatrixShape flat_;  // of all flat inputs, once one was seen
  double work_ = 0;
  size_t at_ = 0;
};

}  // namespace

std::vector<NodeValues> evaluate(const Expression& expression, const std::vector<NodeValues>& inputs,
                                 Arithmetic arithmetic) {
  return Evaluation(expression, inputs, arithmetic).run();
}

}  // namespace tycho
