// Translates the tree of a pattern to steps of the machine.
#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/data/tokenizer/patterns/regex_syntax.h"
#include "trainer/data/tokenizer/patterns/split_regex.h"

namespace tycho {
namespace {

using NodeKind = RegexNode::Kind;
using Repeat = RegexNode::Repeat;
using Op = RegexProgram::Op;

constexpr size_t kMaxSteps = 20'000;

class Compiler {
 public:
  explicit Compiler(std::string_view pattern) : pattern_(pattern) {}

  RegexProgram compile() {
    emit(parse_regex(pattern_));
    add({Op::kMatch});
    return std::move(program_);
  }

 private:
  uint32_t here() const { return static_cast<uint32_t>(program_.steps.size()); }
  uint32_t add(RegexProgram::Step step) {
    if (program_.steps.size() >= kMaxSteps)
      fail(ExitCode::kUnusable, "[regex] the pattern is too large: {} steps at most. {}", kMaxSteps,
           pattern_.substr(0, 200));
    program_.steps.push_back(step);
    return here() - 1;
  }
  uint32_t set_of(const CodeSet& set) {
    const auto found = std::find(program_.sets.begin(), program_.sets.end(), set);
    if (found != program_.sets.end()) return static_cast<uint32_t>(found - program_.sets.begin());
    program_.sets.push_back(set);
    return static_cast<uint32_t>(program_.sets.size() - 1);
  }

  void emit(const RegexNode& node);
  void emit_choice(const RegexNode& node);
  void emit_repeat(const RegexNode& node);
  void emit_inner(Op op, const RegexNode& child);

  std::string_view pattern_;
  RegexProgram program_;
};

void Compiler::emit(const RegexNode& node) {
  switch (node.kind) {
    case NodeKind::kSet: add({Op::kSet, set_of(node.set)}); break;
    case NodeKind::kSequence:
      for (const RegexNode& child : node.children) emit(child);
      break;
    case NodeKind::kChoice: emit_choice(node); break;
    case NodeKind::kRepeat: emit_repeat(node); break;
    case NodeKind::kAhead: emit_inner(Op::kAhead, node.children[0]); break;
    case NodeKind::kNotAhead: emit_inner(Op::kNotAhead, node.children[0]); break;
    case NodeKind::kAtomic: emit_inner(Op::kAtomic, node.children[0]); break;
    case NodeKind::kAnchor:
      add({static_cast<Op>(static_cast<int>(Op::kLineBegin) + static_cast<int>(node.anchor))});
      break;
  }
}

void Compiler::emit_choice(const RegexNode& node) {
  std::vector<uint32_t> ends;
  for (size_t i = 0; i + 1 < node.children.size(); ++i) {
    const uint32_t fork = add({Op::kFork, here() + 1});
    emit(node.children[i]);
    ends.push_back(add({Op::kJump}));
    program_.steps[fork].y = here();
  }
  emit(node.children.back());
  for (const uint32_t end : ends) program_.steps[end].x = here();
}

void Compiler::emit_inner(Op op, const RegexNode& child) {
  const uint32_t begin = add({op});
  emit(child);
  add({Op::kMatch});
  program_.steps[begin].x = here();
}

void Compiler::emit_repeat(const RegexNode& node) {
  const RegexNode& child = node.children[0];
  if (child.kind == NodeKind::kSet) {
    const Op op = node.repeat == Repeat::kGreedy ? Op::kRepeat
                  : node.repeat == Repeat::kLazy ? Op::kRepeatLazy
                                                 : Op::kRepeatAll;
    add({op, set_of(child.set), 0, node.least, node.most});
    return;
  }
  if (node.repeat == Repeat::kPossessive) {
    RegexNode plain = node;
    plain.repeat = Repeat::kGreedy;
    return emit_inner(Op::kAtomic, plain);
  }
  for (uint32_t i = 0; i < node.least; ++i) emit(child);
  // A fork tries the child first, then the part after the end; a lazy one tries them in reverse.
  const auto fork = [&] { return add({Op::kFork}); };
  const auto set_fork = [&](uint32_t at, uint32_t into, uint32_t past) {
    program_.steps[at].x = node.repeat == Repeat::kGreedy ? into : past;
    program_.steps[at].y = node.repeat == Repeat::kGreedy ? past : into;
  };
  if (node.most == UINT32_MAX) {
    const uint32_t loop = fork(), slot = program_.num_slots++;
    add({Op::kMark, slot});
    emit(child);
    add({Op::kMoved, slot});
    add({Op::kJump, loop});
    set_fork(loop, loop + 1, here());
    return;
  }
  std::vector<uint32_t> forks;
  for (uint32_t i = node.least; i < node.most; ++i) {
    forks.push_back(fork());
    emit(child);
  }
  for (const uint32_t at : forks) set_fork(at, at + 1, here());
}

}  // namespace

RegexProgram compile_regex(std::string_view pattern) { return Compiler(pattern).compile(); }

}  // namespace tycho
