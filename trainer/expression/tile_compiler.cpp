// Fuses operations and gives their results places.
#include "trainer/expression/tile_compiler.h"

#include <algorithm>
#include <limits>
#include <map>

#include "trainer/base/error.h"
#include "trainer/expression/expression_check.h"

namespace tycho {
namespace {

constexpr int32_t kNobody = -1, kAtTheEnd = std::numeric_limits<int32_t>::max();

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
    count_uses();
    save_moved_inputs();
    for (size_t i = 0; i < expression_.nodes.size(); ++i)
      if (is_computed(static_cast<int32_t>(i))) add_step(static_cast<int32_t>(i));
    drop_fused();
    place_outputs();
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

  void count_uses() {
    for (size_t i = 0; i < expression_.nodes.size(); ++i)
      for (int k = 0;
           is_computed(static_cast<int32_t>(i)) && k < operation(expression_.nodes[i].op).arguments; ++k)
        ++uses_[static_cast<size_t>(same(expression_.nodes[i].arguments[static_cast<size_t>(k)]))];
    for (const auto& [array, output] : outputs_) ++uses_[static_cast<size_t>(output)];
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

  /// Returns the index of the step of a value that only the next step needs, or kNobody.
  int32_t fusable(int32_t value) const {
    const auto found = step_of_.find(value);
    if (found == step_of_.end() || uses_[static_cast<size_t>(value)] != 1) return kNobody;
    const Step& step = steps_[static_cast<size_t>(found->second)];
    return is_basic(step.op) && step.fusion == Fusion::kNone ? found->second : kNobody;
  }

  void add_step(int32_t i) {
    Step step{.op = node(i).op, .result = i};
    for (int k = 0; k < operation(step.op).arguments; ++k)
      step.operands.push_back(same(node(i).arguments[static_cast<size_t>(k)]));
    if (is_basic(step.op)) fuse(step);
    step_of_[i] = static_cast<int32_t>(steps_.size());
    steps_.push_back(std::move(step));
  }

  void fuse(Step& step) {
    const int32_t left = fusable(step.operands[0]), right = fusable(step.operands[1]);
    const bool sum = step.op == Op::kAdd || step.op == Op::kSub;
    const auto is_product = [&](int32_t s) {
      return s >= 0 && steps_[static_cast<size_t>(s)].op == Op::kMul;
    };
    step.then = step.op;
    if (sum && is_product(left) && is_product(right)) {
      step.fusion = Fusion::kProducts, step.op = Op::kMul;
      step.operands = taken(left);
      for (const int32_t operand : taken(right)) step.operands.push_back(operand);
    } else if (left >= 0 || right >= 0) {
      step.fusion = left >= 0 ? Fusion::kLeft : Fusion::kRight;
      const int32_t other = step.operands[left >= 0 ? 1 : 0], first = left >= 0 ? left : right;
      step.op = steps_[static_cast<size_t>(first)].op;
      step.operands = taken(first);
      step.operands.push_back(other);
    }
  }

  /// Returns the operands of a step that another one does along.
  std::vector<int32_t> taken(int32_t index) {
    Step& step = steps_[static_cast<size_t>(index)];
    step.result = kNobody;
    return step.operands;
  }

  void drop_fused() {
    std::erase_if(steps_, [](const Step& step) { return step.result == kNobody; });
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

  bool is_own(int32_t value) const { return static_cast<size_t>(value) < expression_.nodes.size(); }

  void place_temporaries() {
    std::map<int32_t, int32_t> last_use;
    for (size_t i = 0; i < steps_.size(); ++i)
      for (const int32_t operand : steps_[i].operands) last_use[operand] = static_cast<int32_t>(i);
    std::vector<int32_t> free;
    for (size_t i = 0; i < steps_.size(); ++i) {
      for (const int32_t operand : steps_[i].operands) {
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
      uint16_t* to[] = {&instruction.a, &instruction.b, &instruction.c, &instruction.d};
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
  std::vector<Place> places_;                         // of nodes, then of saved inputs
  std::vector<int> uses_;
  std::vector<Step> steps_;
  std::map<int32_t, int32_t> step_of_;
};

}  // namespace

CompiledTiles compile_tiles(const Expression& expression) { return Compiler(expression).run(); }

}  // namespace tycho
