// Backtracks with its own stack: deep patterns use memory, not the thread's stack, and steps are counted.
#include "trainer/data/tokenizer/patterns/split_regex.h"

#include "trainer/base/text/utf8.h"
#include "trainer/data/rows/skipped_rows.h"

namespace tycho {
namespace {

using Op = RegexProgram::Op;

constexpr uint64_t kFreeSteps = 1'000'000, kStepsPerByte = 1000;
constexpr size_t kNoPlace = SIZE_MAX;

/// Returns the start of the character that ends at `end`.
size_t step_back(std::string_view text, size_t begin, size_t end) {
  for (size_t length = 2; length <= 4 && begin + length <= end; ++length) {
    if ((text[end - length + 1] & 0xC0) != 0x80) break;
    uint32_t code;
    if (decode_utf8(text.data() + end - length, length, code) == length) return end - length;
  }
  return end - 1;
}

class Machine {
 public:
  Machine(const RegexProgram& program, std::string_view text, SplitRegex::Effort& effort)
      : program_(program), text_(text), effort_(effort), slots_(program.num_slots, kNoPlace) {}

  /// Returns the end of the match that begins at `begin`; npos when there is none.
  size_t match(uint32_t first, size_t begin);

 private:
  struct Choice {  // where to continue when the path taken fails
    uint32_t step;
    size_t position;
    size_t limit;  // limit of a repetition: the last position (greedy) or the most characters left (lazy)
    uint32_t slot = 0;
  };
  enum Limit : size_t { kPlain = SIZE_MAX, kRestore = SIZE_MAX - 1 };

  void spend();
  bool in_set(uint32_t set, size_t position, size_t& length) const;
  bool repeat(const RegexProgram::Step& step, uint32_t pc, size_t& position);
  bool look(const RegexProgram::Step& step, uint32_t pc, size_t& position);
  bool at_anchor(Op op, size_t position) const;
  bool go_back(size_t floor, uint32_t& pc, size_t& position);

  const RegexProgram& program_;
  std::string_view text_;
  SplitRegex::Effort& effort_;
  std::vector<Choice> choices_;
  std::vector<size_t> slots_;
};

void Machine::spend() {
  if (++effort_.steps > kFreeSteps + kStepsPerByte * (effort_.bytes + text_.size()))
    throw BadRow(fmt::format(
        "[regex] the tokenizer's pattern takes too long on a text of {} bytes: use a pattern that does not "
        "repeat what is repeated, such as (a+)+",
        text_.size()));
}

bool Machine::in_set(uint32_t set, size_t position, size_t& length) const {
  if (position >= text_.size()) return false;
  uint32_t code;
  length = decode_utf8(text_.data() + position, text_.size() - position, code);
  return program_.sets[set].contains(code);
}

bool Machine::repeat(const RegexProgram::Step& step, uint32_t pc, size_t& position) {
  uint32_t count = 0;
  size_t length = 0, least = position;
  const uint32_t wanted = step.op == Op::kRepeatLazy ? step.least : step.most;
  for (; count < wanted && in_set(step.x, position, length); ++count) {
    spend();
    position += length;
    if (count + 1 == step.least) least = position;
  }
  if (count < step.least) return false;
  if (step.op == Op::kRepeat && position > least) choices_.push_back({pc, position, least, 0});
  if (step.op == Op::kRepeatLazy && step.most > count)
    choices_.push_back({pc, position, step.most - count, 0});
  return true;
}

bool Machine::look(const RegexProgram::Step& step, uint32_t pc, size_t& position) {
  const size_t end = match(pc + 1, position);
  if (step.op == Op::kNotAhead) return end == std::string_view::npos;
  if (end == std::string_view::npos) return false;
  if (step.op == Op::kAtomic) position = end;
  return true;
}

bool Machine::at_anchor(Op op, size_t position) const {
  const size_t size = text_.size();
  switch (op) {
    case Op::kTextBegin: return position == 0;
    case Op::kLineBegin: return position == 0 || (text_[position - 1] == '\n' && position < size);
    case Op::kTextEnd: return position == size;
    case Op::kLineEnd: return position == size || text_[position] == '\n';
    default: return position == size || (position + 1 == size && text_[position] == '\n');
  }
}

/// Continues with the last choice above `floor`. Returns false if none is left.
bool Machine::go_back(size_t floor, uint32_t& pc, size_t& position) {
  while (choices_.size() > floor) {
    Choice& choice = choices_.back();
    if (choice.limit == kRestore) {
      slots_[choice.slot] = choice.position;
      choices_.pop_back();
      continue;
    }
    pc = choice.step;
    position = choice.position;
    if (choice.limit == kPlain) {
      choices_.pop_back();
      return true;
    }
    const RegexProgram::Step& step = program_.steps[pc++];
    if (step.op == Op::kRepeat) {
      position = choice.position = step_back(text_, choice.limit, position);
      if (position == choice.limit) choices_.pop_back();
      return true;
    }
    size_t length = 0;
    if (!in_set(step.x, position, length)) {
      choices_.pop_back();
      continue;
    }
    position = choice.position += length;
    if (--choice.limit == 0) choices_.pop_back();
    return true;
  }
  return false;
}

size_t Machine::match(uint32_t first, size_t begin) {
  const size_t floor = choices_.size();
  uint32_t pc = first;
  size_t position = begin;
  for (bool going = true; going;) {
    spend();
    const RegexProgram::Step& step = program_.steps[pc];
    bool ok = true;
    size_t length = 0;
    switch (step.op) {
      case Op::kSet:
        ok = in_set(step.x, position, length);
        position += length;
        ++pc;
        break;
      case Op::kRepeat:
      case Op::kRepeatLazy:
      case Op::kRepeatAll: ok = repeat(step, pc++, position); break;
      case Op::kFork:
        choices_.push_back({step.y, position, kPlain, 0});
        pc = step.x;
        break;
      case Op::kJump: pc = step.x; break;
      case Op::kMark:
        choices_.push_back({0, slots_[step.x], kRestore, step.x});
        slots_[step.x] = position;
        ++pc;
        break;
      case Op::kMoved: ok = slots_[step.x] != position, ++pc; break;
      case Op::kAhead:
      case Op::kNotAhead:
      case Op::kAtomic:
        ok = look(step, pc, position);
        pc = step.x;
        break;
      case Op::kMatch: choices_.resize(floor); return position;
      default: ok = at_anchor(step.op, position), ++pc; break;
    }
    if (!ok) going = go_back(floor, pc, position);
  }
  return std::string_view::npos;
}

}  // namespace

std::optional<SplitRegex::Match> SplitRegex::find(std::string_view text, size_t from, Effort& effort) const {
  Machine machine(program_, text, effort);
  for (size_t begin = from; begin <= text.size();) {
    const size_t end = machine.match(0, begin);
    if (end != std::string_view::npos) return Match{begin, end};
    if (begin == text.size()) break;
    uint32_t code;
    begin += decode_utf8(text.data() + begin, text.size() - begin, code);
  }
  return std::nullopt;
}

}  // namespace tycho
