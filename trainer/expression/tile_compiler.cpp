// Orders operations so that results pass to their only users in registers, and gives the others places.
#include "trainer/expression/tile_compiler.h"

#include <algorithm>
#include <limits>
#include <map>

#include "trainer/base/error.h"
#include "trainer/expression/expression_check.h"

namespace tycho {
namespace {

constexpr int32_t kNobody = -1, kAtTheEnd = std::numeric_limits<int32_t>::max();
constexpr int32_t kKept = std::numeric_limits<int32_t>::min();  // the result of the step before

/// An instruction whose operands and result are nodes.
struct Step {
  Op op = Op::kAdd, then = Op::kAdd;
  Fusion fusion = Fusion::kNone;
  int32_t result = kNobody;
  std::vector<int32_t> operands;
};

struct Place {
  enum class Kind { kNone, kArray, kTemporary, kConstant } kind = Kind::kNone;
  int32_t index = 0;
};

bool is_basic(Op op) { return op == Op::kAdd || op == Op::kSub || op == Op::kMul || op == Op::kDiv; }

class Compiler {
 public:
  explicit Compiler(const Expression& expression)
      : expression_(expression), types_(check_expression(expression)) {}

  CompiledTiles run() {
    check_shapes();
    list_arrays();
    follow_broadcasts();
    find_bells();
    count_uses();
    save_moved_inputs();
    for (size_t i = 0; i < expression_.nodes.size(); ++i)
      if (is_computed(static_cast<int32_t>(i)) && is_stored_[i]) compute(static_cast<int32_t>(i));
    place_outputs();
    forget_unread();
    place_temporaries();
    write_instructions();
    return std::move(out_);
  }

 private:
  const Node& node(int32_t i) const { return expression_.nodes[static_cast<size_t>(i)]; }
  const NodeType& type(int32_t i) const { return types_[static_cast<size_t>(i)]; }
  int32_t same(int32_t i) const { return same_[static_cast<size_t>(i)]; }
  Place& place(int32_t i) { return places_[static_cast<size_t>(i)]; }

  void check_shapes() const {
    MatrixShape shape;
    bool known = false;
    for (size_t i = 0; i < expression_.nodes.size(); ++i) {
      const OpKind kind = operation(expression_.nodes[i].op).kind;
      if (kind == OpKind::kReduction || kind == OpKind::kMatrix)
        fail(ExitCode::kRecipe, "{}: expected elementwise operations here, got one over a matrix",
             place_of(expression_, i));
      if (types_[i].scalar || types_[i].shape == MatrixShape{1, 1}) continue;
      if (known && !(types_[i].shape == shape))
        fail(ExitCode::kRecipe, "{}: expected elements of one shape here, got [{}, {}] and [{}, {}]",
             place_of(expression_, i), shape.rows, shape.columns, types_[i].shape.rows,
             types_[i].shape.columns);
      shape = types_[i].shape, known = true;
    }
  }

  void list_arrays() {
    for (const ExpressionInput& input : expression_.inputs) {
      input_arrays_.push_back(input.scalar ? kNobody : static_cast<int32_t>(out_.arrays.size()));
      if (input.scalar) continue;
      array_of_.emplace(input.name, static_cast<int32_t>(out_.arrays.size()));
      out_.arrays.push_back({.name = input.name, .one = input.shape == MatrixShape{1, 1}});
    }
    for (const ExpressionOutput& output : expression_.outputs) {
      if (type(output.node).scalar && !array_of_.contains(output.name)) continue;
      const auto [found, added] = array_of_.emplace(output.name, static_cast<int32_t>(out_.arrays.size()));
      if (added) out_.arrays.push_back({.name = output.name});
      outputs_.push_back({found->second, output.node});
    }
  }

  /// A broadcast value is its argument: tiles have no shape.
  void follow_broadcasts() {
    for (size_t i = 0; i < expression_.nodes.size(); ++i) {
      const bool broadcast = expression_.nodes[i].op == Op::kBroadcast && !types_[i].scalar;
      same_.push_back(broadcast ? same(expression_.nodes[i].arguments[0]) : static_cast<int32_t>(i));
    }
    places_.resize(expression_.nodes.size());
    uses_.resize(expression_.nodes.size());
    for (auto& [array, output] : outputs_) output = same(output);
  }

  bool is_computed(int32_t i) const {
    return !type(i).scalar && operation(node(i).op).kind != OpKind::kSource && same(i) == i;
  }
  bool is_input(int32_t i) const { return node(i).op == Op::kInput && !type(i).scalar; }
  int32_t array_of(int32_t input) const { return input_arrays_[static_cast<size_t>(node(input).input)]; }

  /// Finds exp(-(a * a)) of each a: erf(a) is computed with it, and its derivative is a multiple of it.
  void find_bells() {
    for (size_t i = 0; i < expression_.nodes.size(); ++i) {
      if (expression_.nodes[i].op != Op::kExp || !is_computed(static_cast<int32_t>(i))) continue;
      const int32_t negative = operands_of(static_cast<int32_t>(i))[0];
      if (node(negative).op != Op::kNeg || type(negative).scalar) continue;
      const int32_t square = operands_of(negative)[0];
      if (node(square).op != Op::kMul) continue;
      const std::vector<int32_t> factors = operands_of(square);
      if (factors[0] == factors[1]) bells_.emplace(factors[0], static_cast<int32_t>(i));
    }
  }

  /// Returns exp(-(a * a)) if node i is erf(a) and the expression has both, else kNobody.
  int32_t bell_of(int32_t i) const {
    if (node(i).op != Op::kErf) return kNobody;
    const auto found = bells_.find(operands_of(i)[0]);
    return found == bells_.end() ? kNobody : found->second;
  }

  void count_uses() {
    for (size_t i = 0; i < expression_.nodes.size(); ++i)
      for (int k = 0;
           is_computed(static_cast<int32_t>(i)) && k < operation(expression_.nodes[i].op).arguments; ++k)
        ++uses_[static_cast<size_t>(same(expression_.nodes[i].arguments[static_cast<size_t>(k)]))];
    for (size_t i = 0; i < expression_.nodes.size(); ++i)
      if (is_computed(static_cast<int32_t>(i)) && bell_of(static_cast<int32_t>(i)) != kNobody)
        ++uses_[static_cast<size_t>(bell_of(static_cast<int32_t>(i)))];
    for (const auto& [array, output] : outputs_) ++uses_[static_cast<size_t>(output)];
    for (const int uses : uses_) is_stored_.push_back(uses > 1);
    for (const auto& [array, output] : outputs_) is_stored_[static_cast<size_t>(output)] = true;
    is_done_.resize(uses_.size());
  }

  /// An output that is an input of another name: what that held is copied first, since it may be overwritten.
  void save_moved_inputs() {
    for (auto& [array, output] : outputs_) {
      if (!is_input(output) || array_of(output) == array) continue;
      steps_.push_back(
          {.op = Op::kBroadcast, .result = static_cast<int32_t>(places_.size()), .operands = {output}});
      output = static_cast<int32_t>(places_.size());
      places_.emplace_back();
    }
  }

  bool is_pending(int32_t value) const { return is_computed(value) && !is_done_[static_cast<size_t>(value)]; }

  std::vector<int32_t> operands_of(int32_t i) const {
    std::vector<int32_t> operands;
    for (int k = 0; k < operation(node(i).op).arguments; ++k)
      operands.push_back(same(node(i).arguments[static_cast<size_t>(k)]));
    return operands;
  }

  /// Returns true for a product that only one operation needs, of values that have places.
  bool is_fusable(int32_t value) const {
    if (!is_pending(value) || is_stored_[static_cast<size_t>(value)] || node(value).op != Op::kMul)
      return false;
    const std::vector<int32_t> factors = operands_of(value);
    return !is_pending(factors[0]) && !is_pending(factors[1]);
  }

  /// Returns which operand is done within the step of a basic operation on two that are not done yet, or
  /// kNobody.
  int32_t fused_operand(int32_t i, const std::vector<int32_t>& operands) const {
    if (!is_basic(node(i).op) || operands[0] == operands[1]) return kNobody;
    if (!is_pending(operands[0]) || !is_pending(operands[1])) return kNobody;
    if (is_fusable(operands[1])) return 1;
    return is_fusable(operands[0]) ? 0 : kNobody;
  }

  void compute(int32_t i) {
    if (!is_pending(i)) return;
    std::vector<int32_t> operands = operands_of(i);
    Step step{.op = node(i).op, .result = i};
    if (const int32_t fused = fused_operand(i, operands); fused != kNobody) {
      const int32_t product = operands[static_cast<size_t>(fused)];
      const int32_t other = operands[static_cast<size_t>(1 - fused)];
      compute(other);
      step.then = step.op, step.op = Op::kMul, step.fusion = fused == 0 ? Fusion::kLeft : Fusion::kRight;
      is_done_[static_cast<size_t>(product)] = true;
      operands = operands_of(product);
      operands.push_back(other);
    } else if (const int32_t bell = bell_of(i); bell != kNobody) {
      step.then = Op::kExp;
      operands.push_back(bell);
      compute_all(operands);
    } else if (step.op == Op::kWhere) {  // the condition comes last: kernels choose where they compare
      compute_all({operands[1], operands[2], operands[0]});
    } else {
      compute_all(operands);
    }
    add_step(std::move(step), std::move(operands));
  }

  /// Computes operands; the last one stays in registers, others that are needed once get places, too.
  void compute_all(const std::vector<int32_t>& operands) {
    const auto last =
        std::find_if(operands.rbegin(), operands.rend(), [&](int32_t o) { return is_pending(o); });
    for (const int32_t operand : operands) {
      if (last == operands.rend() || operand == *last) continue;
      if (is_pending(operand)) is_stored_[static_cast<size_t>(operand)] = true;
      compute(operand);
    }
    if (last != operands.rend()) compute(*last);
  }

  void add_step(Step step, std::vector<int32_t> operands) {
    const int32_t before = steps_.empty() ? kNobody : steps_.back().result;
    const auto keep = [&](int32_t& operand) { operand = operand == before ? kKept : operand; };
    if (step.fusion == Fusion::kNone)
      for (int32_t& operand : operands) keep(operand);
    else
      keep(operands[2]);
    is_done_[static_cast<size_t>(step.result)] = true;
    step.operands = std::move(operands);
    steps_.push_back(std::move(step));
  }

  /// Leaves results without a place in registers, if no step reads their place.
  void forget_unread() {
    std::vector<bool> is_read(places_.size());
    for (const Step& step : steps_)
      for (const int32_t operand : step.operands)
        if (operand != kKept) is_read[static_cast<size_t>(operand)] = true;
    for (Step& step : steps_)
      if (step.result >= 0 && !is_read[static_cast<size_t>(step.result)] &&
          place(step.result).kind == Place::Kind::kNone)
        step.result = kKept;
  }

  /// Steps write outputs into their arrays, if no later step reads what was there; others are copied at the
  /// end.
  void place_outputs() {
    std::vector<int32_t> last_read(out_.arrays.size(), kNobody);
    std::map<int32_t, int32_t> made;
    for (size_t i = 0; i < steps_.size(); ++i) {
      made[steps_[i].result] = static_cast<int32_t>(i);
      for (const int32_t operand : steps_[i].operands)
        if (is_own(operand) && is_input(operand))
          last_read[static_cast<size_t>(array_of(operand))] = static_cast<int32_t>(i);
    }
    for (size_t i = 0; i < out_.arrays.size(); ++i) out_.arrays[i].read = last_read[i] >= 0;
    for (const auto& [array, value] : outputs_) {
      if (is_own(value) && is_input(value)) continue;  // itself
      out_.arrays[static_cast<size_t>(array)].written = true;
      const auto step = made.find(value);
      if (step != made.end() && place(value).kind == Place::Kind::kNone &&
          last_read[static_cast<size_t>(array)] <= step->second)
        place(value) = {Place::Kind::kArray, array};
      else
        copies_.push_back({array, value});
    }
    for (const auto& [array, value] : copies_)
      steps_.push_back({.op = Op::kBroadcast, .result = -2 - array, .operands = {value}});
  }

  bool is_own(int32_t value) const {
    return value >= 0 && static_cast<size_t>(value) < expression_.nodes.size();
  }

  void place_temporaries() {
    std::map<int32_t, int32_t> last_use;
    for (size_t i = 0; i < steps_.size(); ++i)
      for (const int32_t operand : steps_[i].operands) last_use[operand] = static_cast<int32_t>(i);
    std::vector<int32_t> free;
    for (size_t i = 0; i < steps_.size(); ++i) {
      for (const int32_t operand : steps_[i].operands) {
        if (operand == kKept) continue;
        auto& last = last_use[operand];
        if (last != static_cast<int32_t>(i) || place(operand).kind != Place::Kind::kTemporary) continue;
        free.push_back(place(operand).index);
        last = kAtTheEnd;  // freed once, if it is two operands
      }
      if (steps_[i].result < 0 || place(steps_[i].result).kind != Place::Kind::kNone) continue;
      if (free.empty()) free.push_back(out_.num_temporaries++);
      place(steps_[i].result) = {Place::Kind::kTemporary, free.back()};
      free.pop_back();
    }
  }

  uint16_t number_of(int32_t value) {
    if (value == kKept) return kRegisters;
    if (value <= -2) return static_cast<uint16_t>(-2 - value);
    Place& known = place(value);
    if (known.kind == Place::Kind::kNone && is_input(value)) known = {Place::Kind::kArray, array_of(value)};
    if (known.kind == Place::Kind::kNone) {
      known = {Place::Kind::kConstant, static_cast<int32_t>(out_.constants.size())};
      out_.constants.push_back(value);
    }
    int32_t number = known.index;
    if (known.kind != Place::Kind::kArray) number += static_cast<int32_t>(out_.arrays.size());
    if (known.kind == Place::Kind::kConstant) number += out_.num_temporaries;
    return static_cast<uint16_t>(number);
  }

  void write_instructions() {
    for (const Step& step : steps_) {
      TileInstruction& instruction = out_.instructions.emplace_back();
      instruction.op = step.op, instruction.then = step.then, instruction.fusion = step.fusion;
      uint16_t* to[] = {&instruction.a, &instruction.b, &instruction.c};
      for (size_t k = 0; k < step.operands.size(); ++k) *to[k] = number_of(step.operands[k]);
      instruction.to = number_of(step.result);
    }
  }

  const Expression& expression_;
  const std::vector<NodeType> types_;
  CompiledTiles out_;
  std::map<std::string, int32_t> array_of_;
  std::vector<int32_t> input_arrays_;                 // of each input of the expression
  std::vector<std::pair<int32_t, int32_t>> outputs_;  // array, value
  std::vector<std::pair<int32_t, int32_t>> copies_;   // done last
  std::vector<int32_t> same_;                         // node that a node is a broadcast of
  std::map<int32_t, int32_t> bells_;                  // a -> exp(-(a * a))
  std::vector<Place> places_;                         // of nodes, then of saved inputs
  std::vector<int> uses_;
  std::vector<bool>
      is_stored_;  // values that need a place: several operations use them, or an output is them
  std::vector<bool> is_done_;
  std::vector<Step> steps_;
};

}  // namespace

CompiledTiles compile_tiles(const Expression& expression) { return Compiler(expression).run(); }

}  // namespace tycho
