// Gives every node its phase, then copies each phase's nodes into an expression of its own.
#include "trainer/expression/update_phases.h"

#include <algorithm>
#include <functional>
#include <map>

#include "trainer/base/error.h"
#include "trainer/expression/expression_check.h"

namespace tycho {
namespace {

enum class Phase : uint8_t { kScalar, kBefore, kWhole, kAfter };

bool is_of_whole(Op op) {
  return operation(op).kind == OpKind::kReduction || operation(op).kind == OpKind::kMatrix;
}

/// Copies nodes of an expression, from the inputs of one phase on.
class Copy {
 public:
  Copy(const Expression& from, const std::vector<NodeType>& types, bool flat,
       std::function<bool(int32_t)> enters)
      : from_(from), types_(types), flat_(flat), enters_(std::move(enters)) {}

  static std::string name_of(int32_t node) { return fmt::format("v.{}", node); }

  void add_output(const std::string& name, int32_t node) { to_.outputs.push_back({name, place(node)}); }

  /// Adds a value for a later phase; a boolean travels as 1 or 0.
  void add_value(int32_t node) {
    const int32_t here = place(node);
    const bool boolean = types_[static_cast<size_t>(node)].boolean;
    to_.outputs.push_back(
        {name_of(node), boolean ? add({.op = Op::kWhere, .arguments = {here, number(1), number(0)}}) : here});
  }

  Expression take() { return std::move(to_); }

 private:
  int32_t add(const Node& node) {
    to_.nodes.push_back(node);
    if (!from_.lines.empty()) to_.lines.push_back(from_.lines[at_]);
    return static_cast<int32_t>(to_.nodes.size() - 1);
  }
  int32_t number(double value) { return add({.op = Op::kNumber, .number = value}); }

  int32_t input(const std::string& name, const NodeType& type) {
    const bool is_one = type.shape == MatrixShape{1, 1};
    to_.inputs.push_back({name, type.scalar, flat_ && !is_one ? MatrixShape{} : type.shape});
    return add({.op = Op::kInput, .input = static_cast<int32_t>(to_.inputs.size() - 1)});
  }

  int32_t place(int32_t node) {
    if (const auto found = placed_.find(node); found != placed_.end()) return found->second;
    const auto at = static_cast<size_t>(node);
    Node copy = from_.nodes[at];
    const NodeType& type = types_[at];
    int32_t here = -1;
    if (enters_(node)) {
      at_ = at, here = input(name_of(node), type);
      if (type.boolean) here = add({.op = Op::kNe, .arguments = {here, number(0), -1}});
    } else if (copy.op == Op::kInput) {
      at_ = at, here = input(from_.inputs[static_cast<size_t>(copy.input)].name, type);
    } else {
      for (int k = 0; k < operation(copy.op).arguments; ++k)
        copy.arguments[static_cast<size_t>(k)] = place(copy.arguments[static_cast<size_t>(k)]);
      at_ = at, here = add(copy);
    }
    return placed_[node] = here;
  }

  const Expression& from_;
  const std::vector<NodeType>& types_;
  const bool flat_;
  const std::function<bool(int32_t)> enters_;
  Expression to_;
  std::map<int32_t, int32_t> placed_;
  size_t at_ = 0;  // node of from_ whose line is that of added nodes
};

class Cut {
 public:
  Cut(const Expression& expression, const std::set<std::string>& parts, const std::string& everywhere)
      : expression_(expression),
        parts_(parts),
        everywhere_(everywhere),
        types_(check_expression(expression)) {
    give_phases();
    find_values();
  }

  Phases run() const {
    const auto none = [](int32_t) { return false; };
    const auto into_whole = [this](int32_t i) { return phase(i) == Phase::kBefore && !is_input(i); };
    const auto into_after = [&](int32_t i) { return into_whole(i) || phase(i) == Phase::kWhole; };
    Copy before(expression_, types_, true, none), whole(expression_, types_, false, into_whole),
        after(expression_, types_, true, into_after);
    for (const int32_t i : values_) (phase(i) == Phase::kBefore ? before : whole).add_value(i);
    for (const ExpressionOutput& output : expression_.outputs)
      if (parts_.contains(output.name))
        after.add_output(output.name, output.node);
      else if (!type(output.node).scalar)
        whole.add_output(output.name, output.node);
    return {before.take(), whole.take(), after.take()};
  }

 private:
  const Node& node(int32_t i) const { return expression_.nodes[static_cast<size_t>(i)]; }
  const NodeType& type(int32_t i) const { return types_[static_cast<size_t>(i)]; }
  Phase phase(int32_t i) const { return phases_[static_cast<size_t>(i)]; }
  bool is_input(int32_t i) const { return node(i).op == Op::kInput; }
  bool is_everywhere(int32_t i) const {
    return type(i).scalar ||
           (is_input(i) && expression_.inputs[static_cast<size_t>(node(i).input)].name == everywhere_);
  }
  bool is_part_input(int32_t i) const {
    return is_input(i) && parts_.contains(expression_.inputs[static_cast<size_t>(node(i).input)].name);
  }
  template <class Body>
  void for_arguments(int32_t i, const Body& body) const {
    for (int k = 0; k < operation(node(i).op).arguments; ++k) body(node(i).arguments[static_cast<size_t>(k)]);
  }

  MatrixShape shape_of_parts() const {
    MatrixShape shape;
    for (const ExpressionInput& input : expression_.inputs) {
      if (!parts_.contains(input.name)) continue;
      TYCHO_CHECK(shape.is_flat() || shape == input.shape, "[expression] expected one shape of {}, got {}",
                  expression_.inputs.front().name, input.name);
      shape = input.shape;
    }
    return shape;
  }

  /// Returns the nodes that reductions, operations on matrices and outputs of the whole depend on.
  std::vector<bool> inner_nodes() const {
    std::vector<bool> inner(types_.size());
    for (const ExpressionOutput& output : expression_.outputs)
      if (!parts_.contains(output.name)) inner[static_cast<size_t>(output.node)] = true;
    for (auto i = static_cast<int32_t>(types_.size()) - 1; i >= 0; --i)
      if (inner[static_cast<size_t>(i)] || is_of_whole(node(i).op)) {
        inner[static_cast<size_t>(i)] = true;
        for_arguments(i, [&](int32_t k) { inner[static_cast<size_t>(k)] = true; });
      }
    return inner;
  }

  void give_phases() {
    const MatrixShape shape = shape_of_parts();
    const std::vector<bool> inner = inner_nodes();
    for (int32_t i = 0; i < static_cast<int32_t>(types_.size()); ++i) {
      const bool is_part =
          type(i).shape == shape && !is_of_whole(node(i).op) && (!is_input(i) || is_part_input(i));
      bool from_parts = is_part;
      for_arguments(
          i, [&](int32_t k) { from_parts &= phase(k) == Phase::kScalar || phase(k) == Phase::kBefore; });
      const bool is_inner = inner[static_cast<size_t>(i)];
      phases_.push_back(is_everywhere(i)         ? Phase::kScalar
                        : is_inner && from_parts ? Phase::kBefore
                        : !is_inner && is_part   ? Phase::kAfter
                                                 : Phase::kWhole);
    }
  }

  /// Finds nodes whose values a later phase needs.
  void find_values() {
    const auto add = [&](int32_t i, Phase user) {
      const bool leaves = phase(i) == Phase::kWhole || (phase(i) == Phase::kBefore && !is_input(i));
      if (leaves && phase(i) < user) values_.insert(i);
    };
    for (int32_t i = 0; i < static_cast<int32_t>(types_.size()); ++i)
      for_arguments(i, [&](int32_t k) { add(k, phase(i)); });
    for (const ExpressionOutput& output : expression_.outputs)
      add(output.node, parts_.contains(output.name) ? Phase::kAfter : Phase::kWhole);
  }

  const Expression& expression_;
  const std::set<std::string>& parts_;
  const std::string& everywhere_;
  const std::vector<NodeType> types_;
  std::vector<Phase> phases_;
  std::set<int32_t> values_;
};

}  // namespace

Phases cut_in_phases(const Expression& expression, const std::set<std::string>& parts,
                     const std::string& everywhere) {
  return Cut(expression, parts, everywhere).run();
}

bool needs_whole_matrix(const Expression& expression) {
  return std::any_of(expression.nodes.begin(), expression.nodes.end(),
                     [](const Node& node) { return is_of_whole(node.op); });
}

}  // namespace tycho
