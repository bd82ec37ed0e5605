// Reverse differentiation of expressions: each node gives its adjoint to its arguments.
#include "trainer/expression/derivative.h"

#include <numbers>

#include "trainer/base/error.h"
#include "trainer/expression/expression_check.h"
#include "trainer/expression/simplify.h"

namespace tycho {
namespace {

class Differentiation {
 public:
  explicit Differentiation(const Expression& from) : out_(from), types_(check_expression(from)) {}

  Expression run(std::string_view output, const std::vector<std::string>& inputs) {
    const size_t end = out_.nodes.size();
    const auto root = static_cast<size_t>(out_.outputs[output_named(out_, output)].node);
    adjoints_.assign(end, -1);
    at_ = root;
    if (!types_[root].scalar) adjoints_[root] = add(Op::kBroadcast, number(1), static_cast<int32_t>(root));
    for (at_ = root + 1; at_-- > 0;)
      if (adjoints_[at_] >= 0) give(static_cast<int32_t>(at_), out_.nodes[at_]);
    for (const std::string& input : inputs) add_output(input, end);
    return simplify(out_);
  }

 private:
  int32_t add(Op op, int32_t a = -1, int32_t b = -1, int32_t c = -1,
              ReducedOver over = ReducedOver::kNothing) {
    return push({.op = op, .arguments = {a, b, c}, .over = over});
  }
  int32_t number(double value) { return push({.op = Op::kNumber, .number = value}); }

  int32_t push(const Node& node) {
    if (out_.nodes.size() >= 8 * kMostNodes)
      fail(ExitCode::kRecipe, "{}: expected a gradient of at most {} operations, got more",
           place_of(out_, at_), 8 * kMostNodes);
    out_.nodes.push_back(node);
    if (!out_.lines.empty()) {
      std::string line = out_.lines[at_];
      out_.lines.push_back(std::move(line));
    }
    types_.push_back(type_of_node(out_, out_.nodes.size() - 1, types_));
    return static_cast<int32_t>(out_.nodes.size()) - 1;
  }

  const NodeType& type(int32_t node) const { return types_[static_cast<size_t>(node)]; }

  /// Returns the value in the shape of `like`: summed where `like` was broadcast, broadcast where it was
  /// summed.
  int32_t shaped(int32_t value, int32_t like) {
    const MatrixShape want = type(like).shape;
    if (!type(value).scalar && !(type(value).shape == want)) {
      const MatrixShape have = type(value).shape;
      if (have.is_flat()) return add(Op::kSum, value, -1, -1, ReducedOver::kTensor);
      if (want == MatrixShape{1, 1}) return add(Op::kSum, value, -1, -1, ReducedOver::kMatrix);
      if (want.columns == 1 && have.columns > 1) value = add(Op::kSum, value, -1, -1, ReducedOver::kRow);
      if (want.rows == 1 && have.rows > 1) value = add(Op::kSum, value, -1, -1, ReducedOver::kColumn);
    }
    return type(value).scalar || !(type(value).shape == want) ? add(Op::kBroadcast, value, like) : value;
  }

  /// Adds to the adjoint of an argument, unless that is a scalar: numbers of the run have no gradient.
  void to(int32_t argument, int32_t gradient) {
    if (type(argument).scalar || type(argument).boolean) return;
    int32_t& adjoint = adjoints_[static_cast<size_t>(argument)];
    adjoint = adjoint < 0 ? shaped(gradient, argument) : add(Op::kAdd, adjoint, shaped(gradient, argument));
  }

  void give(int32_t y, const Node node) {
    const int32_t g = adjoints_[static_cast<size_t>(y)];
    const auto [a, b, c] = node.arguments;
    switch (operation(node.op).kind) {
      case OpKind::kArithmetic:
        return operation(node.op).arguments == 1 ? give_one(y, node.op, a, g)
                                                 : give_more(y, node.op, g, a, b, c);
      case OpKind::kChoice:
        to(b, add(Op::kWhere, a, g, number(0)));
        return to(c, add(Op::kWhere, a, number(0), g));
      case OpKind::kShape: return to(a, g);
      case OpKind::kReduction: return give_reduced(y, node, g);
      case OpKind::kMatrix:
        if (node.op == Op::kTranspose) return to(a, add(Op::kTranspose, shaped(g, y)));
        if (node.op != Op::kMm)
          fail(ExitCode::kRecipe, "{}: expected an operation with a gradient, and {} has none here",
               place_of(out_, at_), operation(node.op).name);
        to(a, add(Op::kMm, g, add(Op::kTranspose, b)));
        return to(b, add(Op::kMm, add(Op::kTranspose, a), g));
      default: return;  // sources have no arguments, booleans no gradient
    }
  }

  int32_t mul(int32_t a, int32_t b) { return add(Op::kMul, a, b); }

  /// Operations of one argument, by the formulas of autograd.
  void give_one(int32_t y, Op op, int32_t x, int32_t g) {
    switch (op) {
      case Op::kNeg: return to(x, add(Op::kNeg, g));
      case Op::kAbs: return to(x, mul(g, add(Op::kSign, x)));
      case Op::kSqrt: return to(x, add(Op::kDiv, g, mul(number(2), y)));
      case Op::kRsqrt: return to(x, mul(mul(number(-0.5), g), mul(mul(y, y), y)));
      case Op::kExp: return to(x, mul(g, y));
      case Op::kLog: return to(x, add(Op::kDiv, g, x));
      case Op::kTanh: return to(x, mul(g, add(Op::kSub, number(1), mul(y, y))));
      case Op::kSigmoid: return to(x, mul(g, mul(add(Op::kSub, number(1), y), y)));
      case Op::kErf:
        return to(x,
                  mul(mul(number(2 * std::numbers::inv_sqrtpi), add(Op::kExp, add(Op::kNeg, mul(x, x)))), g));
      default: return;  // sign and floor have steps only
    }
  }

  void give_more(int32_t y, Op op, int32_t g, int32_t a, int32_t b, int32_t c) {
    switch (op) {
      case Op::kAdd: return to(a, g), to(b, g);
      case Op::kSub: return to(a, g), to(b, add(Op::kNeg, g));
      case Op::kMul: return to(a, mul(g, b)), to(b, mul(g, a));
      case Op::kDiv: to(a, add(Op::kDiv, g, b)); return to(b, mul(add(Op::kNeg, g), add(Op::kDiv, y, b)));
      case Op::kFma: return to(a, mul(g, b)), to(b, mul(g, a)), to(c, g);
      case Op::kPow: return give_power(y, g, a, b);
      case Op::kMin: return give_extreme(Op::kGt, g, a, b), give_extreme(Op::kGt, g, b, a);
      case Op::kMax: return give_extreme(Op::kLt, g, a, b), give_extreme(Op::kLt, g, b, a);
      default: return give_clamp(g, a, b, c);
    }
  }

  void give_power(int32_t y, int32_t g, int32_t x, int32_t exponent) {
    const int32_t zero = number(0);
    const int32_t slope = mul(exponent, add(Op::kPow, x, add(Op::kSub, exponent, number(1))));
    to(x, add(Op::kWhere, add(Op::kEq, exponent, zero), zero, mul(g, slope)));
    const int32_t flat = add(Op::kAnd, add(Op::kEq, x, zero), add(Op::kGe, exponent, zero));
    if (!type(exponent).scalar) to(exponent, add(Op::kWhere, flat, zero, mul(g, mul(y, add(Op::kLog, x)))));
  }

  /// For x in min(x, other) or max(x, other): nothing where x `loses`, half at a tie, else all, NaN included.
  void give_extreme(Op loses, int32_t g, int32_t x, int32_t other) {
    const int32_t shared = add(Op::kWhere, add(Op::kEq, x, other), mul(g, number(0.5)), g);
    to(x, add(Op::kWhere, add(loses, x, other), number(0), shared));
  }

  void give_clamp(int32_t g, int32_t x, int32_t low, int32_t high) {
    const int32_t zero = number(0);
    const auto when = [&](int32_t p, int32_t q) { return add(Op::kWhere, add(Op::kAnd, p, q), g, zero); };
    to(x, when(add(Op::kGe, x, low), add(Op::kLe, x, high)));
    to(low, when(add(Op::kLt, x, low), add(Op::kLt, low, high)));
    const int32_t over = add(Op::kOr, add(Op::kGt, x, high), add(Op::kGe, low, high));
    to(high, add(Op::kWhere, over, g, zero));
  }

  void give_reduced(int32_t y, const Node& node, int32_t g) {
    const int32_t x = node.arguments[0];
    if (node.op == Op::kSum) return to(x, g);
    if (node.op == Op::kMean) {
      const int32_t ones =
          add(Op::kBroadcast, number(1), x);  // counts elements, of which a range has any number
      return to(x, add(Op::kDiv, g, add(Op::kSum, ones, -1, -1, node.over)));
    }
    const int32_t equal = add(Op::kEq, x, y);
    const int32_t count = add(Op::kSum, add(Op::kBroadcast, add(Op::kWhere, equal, number(1), number(0)), x),
                              -1, -1, node.over);
    to(x, add(Op::kWhere, equal, add(Op::kDiv, g, count), number(0)));
  }

  void add_output(const std::string& input, size_t end) {
    const auto index = static_cast<int32_t>(input_named(out_, input));
    if (out_.inputs[static_cast<size_t>(index)].scalar)
      fail(ExitCode::kRecipe, "[expression] expected an input of elements, got the scalar '{}'", input);
    at_ = 0;
    int32_t total = -1;  // an input may have several nodes
    for (size_t i = 0; i < end; ++i) {
      if (out_.nodes[i].op != Op::kInput || out_.nodes[i].input != index || adjoints_[i] < 0) continue;
      total = total < 0 ? adjoints_[i] : add(Op::kAdd, total, adjoints_[i]);
    }
    if (total < 0) total = add(Op::kBroadcast, number(0), push({.op = Op::kInput, .input = index}));
    out_.outputs.push_back({"d_" + input, total});
  }

  Expression out_;
  std::vector<NodeType> types_;
  std::vector<int32_t> adjoints_;  // of the expression's own nodes; -1: none
  size_t at_ = 0;
};

}  // namespace

Expression derivative(const Expression& expression, std::string_view output,
                      const std::vector<std::string>& inputs) {
  return Differentiation(expression).run(output, inputs);
}

}  // namespace tycho
