// Rewrites nodes one by one, in order.
#include "trainer/expression/simplify.h"

#include <map>
#include <optional>
#include <tuple>

#include "trainer/expression/arithmetic.h"
#include "trainer/expression/expression_check.h"

namespace tycho {
namespace {

using Key = std::tuple<Op, std::array<int32_t, 3>, uint64_t, int32_t, ReducedOver>;

bool commutes(Op op) {
  return op == Op::kAdd || op == Op::kMul || op == Op::kEq || op == Op::kNe || op == Op::kAnd ||
         op == Op::kOr;
}

Key key_of(const Node& node) {
  std::array<int32_t, 3> arguments = node.arguments;
  if (commutes(node.op) && arguments[0] > arguments[1]) std::swap(arguments[0], arguments[1]);
  return {node.op, arguments, std::bit_cast<uint64_t>(node.number), node.input, node.over};
}

class Simplifier {
 public:
  explicit Simplifier(const Expression& from) : from_(from), to_{{}, from.inputs, from.outputs, {}} {}

  Expression run() {
    for (at_ = 0; at_ < from_.nodes.size(); ++at_) {
      Node node = from_.nodes[at_];
      for (int i = 0; i < operation(node.op).arguments; ++i)
        node.arguments[static_cast<size_t>(i)] =
            moved_[static_cast<size_t>(node.arguments[static_cast<size_t>(i)])];
      moved_.push_back(rewritten(node));
    }
    for (ExpressionOutput& output : to_.outputs) output.node = moved_[static_cast<size_t>(output.node)];
    return without_unused();
  }

 private:
  int32_t add(const Node& node) {
    const auto [found, added] = known_.try_emplace(key_of(node), static_cast<int32_t>(to_.nodes.size()));
    if (!added) return found->second;
    to_.nodes.push_back(node);
    types_.push_back(type_of_node(to_, to_.nodes.size() - 1, types_));
    if (!from_.lines.empty()) to_.lines.push_back(from_.lines[at_]);
    return found->second;
  }

  const Node& node_at(int32_t node) const { return to_.nodes[static_cast<size_t>(node)]; }
  const NodeType& type_at(int32_t node) const { return types_[static_cast<size_t>(node)]; }
  bool is_number(int32_t node) const { return node_at(node).op == Op::kNumber; }
  bool is(int32_t node, double number) const {
    return is_number(node) &&
           std::bit_cast<uint64_t>(node_at(node).number) == std::bit_cast<uint64_t>(number);
  }

  /// Returns the value of a node if only numbers make it: a number, or a boolean as 0 or 1.
  std::optional<double> constant(int32_t at) const {
    const Node& node = node_at(at);
    if (node.op == Op::kNumber) return node.number;
    const auto found = booleans_.find(at);
    if (found == booleans_.end()) return std::nullopt;
    return found->second;
  }

  std::optional<double> folded(const Node& node) const {
    const int count = operation(node.op).arguments;
    const OpKind kind = operation(node.op).kind;
    if (kind == OpKind::kSource || kind == OpKind::kReduction || kind == OpKind::kMatrix) return std::nullopt;
    double x[3] = {};
    for (int i = 0; i < count; ++i) {
      const std::optional<double> value = constant(node.arguments[static_cast<size_t>(i)]);
      if (!value) return std::nullopt;
      x[i] = *value;
    }
    return apply(node.op, Operands<double>{x[0], x[1], x[2]});
  }

  /// Returns the argument that the node is equal to in every bit, or -1.
  int32_t same_as(const Node& node) const {
    const auto [a, b, c] = node.arguments;
    switch (node.op) {
      case Op::kMul:
        if (is(b, 1)) return a;
        return is(a, 1) ? b : -1;
      case Op::kDiv: return is(b, 1) ? a : -1;
      case Op::kPow: return is(b, 1) ? a : -1;
      case Op::kSub: return is(b, 0) ? a : -1;
      case Op::kAdd:
        if (is(b, -0.0)) return a;
        return is(a, -0.0) ? b : -1;
      case Op::kMin:
      case Op::kMax: return a == b ? a : -1;
      case Op::kNeg: return node_at(a).op == Op::kNeg ? node_at(a).arguments[0] : -1;
      case Op::kAbs: return node_at(a).op == Op::kAbs ? a : -1;
      case Op::kTranspose: return node_at(a).op == Op::kTranspose ? node_at(a).arguments[0] : -1;
      case Op::kBroadcast: return a;
      case Op::kWhere:
      case Op::kEvery:
        if (const std::optional<double> condition = constant(a)) return *condition != 0 ? b : c;
        return b == c ? b : -1;
      default: return -1;
    }
  }

  NodeType type_of(const Node& node) {
    to_.nodes.push_back(node);
    const NodeType type = type_of_node(to_, to_.nodes.size() - 1, types_);
    to_.nodes.pop_back();
    return type;
  }

  static bool is_like(const NodeType& a, const NodeType& b) {
    return a.scalar == b.scalar && a.shape == b.shape;
  }

  /// Replaces an argument that is a broadcast scalar by the scalar, if another argument has the shape.
  void use_scalar(Node& node, size_t i) {
    const Node argument = node_at(node.arguments[i]);
    if (argument.op != Op::kBroadcast || !type_at(argument.arguments[0]).scalar) return;
    if (node.op == Op::kPow && i == 1) return;  // an exponent for all elements has formulas of its own
    Node simpler = node;
    simpler.arguments[i] = argument.arguments[0];
    if (is_like(type_of(simpler), type_of(node))) node = simpler;
  }

  int32_t rewritten(Node node) {
    if (node.op == Op::kAbs && node_at(node.arguments[0]).op == Op::kNeg)
      node.arguments[0] = node_at(node.arguments[0]).arguments[0];
    if (operation(node.op).kind == OpKind::kArithmetic || operation(node.op).kind == OpKind::kComparison)
      for (int i = 0; i < operation(node.op).arguments; ++i) use_scalar(node, static_cast<size_t>(i));
    const std::optional<double> value = folded(node);
    const bool boolean =
        operation(node.op).kind == OpKind::kComparison || operation(node.op).kind == OpKind::kLogic;
    if (value && !boolean && !is_boolean_choice(node)) return add({.op = Op::kNumber, .number = *value});
    // A scalar is a double, and rounded only when it meets elements; a smaller shape is not the node's.
    if (const int32_t same = same_as(node); same >= 0 && is_like(type_at(same), type_of(node))) return same;
    const int32_t added = add(node);
    if (value) booleans_.emplace(added, *value);
    return added;
  }

  bool is_boolean_choice(const Node& node) const {
    return operation(node.op).kind == OpKind::kChoice && type_at(node.arguments[1]).boolean;
  }

  Expression without_unused() const {
    std::vector<bool> used(to_.nodes.size());
    for (const ExpressionOutput& output : to_.outputs) used[static_cast<size_t>(output.node)] = true;
    for (size_t i = to_.nodes.size(); i-- > 0;)
      for (int k = 0; used[i] && k < operation(to_.nodes[i].op).arguments; ++k)
        used[static_cast<size_t>(to_.nodes[i].arguments[static_cast<size_t>(k)])] = true;
    Expression out{{}, to_.inputs, to_.outputs, {}};
    std::vector<int32_t> place(to_.nodes.size(), -1);
    for (size_t i = 0; i < to_.nodes.size(); ++i) {
      if (!used[i]) continue;
      place[i] = static_cast<int32_t>(out.nodes.size());
      Node& node = out.nodes.emplace_back(to_.nodes[i]);
      for (int k = 0; k < operation(node.op).arguments; ++k) {
        int32_t& argument = node.arguments[static_cast<size_t>(k)];
        argument = place[static_cast<size_t>(argument)];
      }
      if (!to_.lines.empty()) out.lines.push_back(to_.lines[i]);
    }
    for (ExpressionOutput& output : out.outputs) output.node = place[static_cast<size_t>(output.node)];
    return out;
  }

  const Expression& from_;
  Expression to_;
  std::vector<NodeType> types_;         // of to_
  std::vector<int32_t> moved_;          // node of from_ -> node of to_
  std::map<int32_t, double> booleans_;  // of to_: known ones
  std::map<Key, int32_t> known_;
  size_t at_ = 0;
};

}  // namespace

Expression simplify(const Expression& expression) { return Simplifier(expression).run(); }

}  // namespace tycho
