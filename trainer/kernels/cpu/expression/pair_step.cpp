// Two instructions in one step: sums, differences and products in pairs, sums of products, choices by a
// comparison. Each result is rounded.
#include "trainer/kernels/cpu/expression/functions.h"
#include "trainer/kernels/cpu/expression/tile_steps.h"

namespace tycho::TYCHO_ISA {
namespace {

/// Returns true for sums, differences and products of fp32.
bool is_quick(Op op) { return op == Op::kAdd || op == Op::kSub || op == Op::kMul; }
bool is_comparison(Op op) { return op >= Op::kLt && op <= Op::kNe; }

void swap_operands(Placed& x) {
  const Placed old = x;
  x.a = old.b, x.b = old.a;
  x.instruction.a = old.instruction.b, x.instruction.b = old.instruction.a;
}

/// Swaps equal operands so that a number comes last, and registers first.
void order_operands(Placed& x) {
  if (x.instruction.op != Op::kSub && (x.b == From::kKept || (x.a == From::kNumber && x.b != From::kNumber)))
    swap_operands(x);
}

/// Returns the step of `f` of a quick operation's operands, and of c. Reads a number that comes first as a
/// tile.
template <class Basic, class F>
TYCHO_SIMD TileFunction step_of_pair(const Placed& first, From c_from, F f) {
  const auto with = [&]<From a, From b>() __attribute__((always_inline)) {
    return c_from == From::kNumber ? step_of<a, b, From::kNumber>(f) : step_of<a, b, From::kMemory>(f);
  };
  constexpr From kKept = From::kKept, kTile = From::kMemory, kNumber = From::kNumber;
  if (first.a == kKept)
    return first.b == kKept     ? with.template operator()<kKept, kKept>()
           : first.b == kNumber ? with.template operator()<kKept, kNumber>()
                                : with.template operator()<kKept, kTile>();
  if (first.b == kNumber) return with.template operator()<kTile, kNumber>();
  if (first.b != kKept) return with.template operator()<kTile, kTile>();
  if constexpr (__is_same(Basic, Difference)) return with.template operator()<kTile, kKept>();
  return nullptr;
}

/// Returns the step of a quick operation, and another one on its result and an operand at `other`, which
/// comes last unless `other_first`.
template <class First>
TileFunction quick_pair(const Placed& first, Op then, From other, bool other_first) {
  if (then == Op::kAdd)
    return step_of_pair<First>(first, other, [](Vec a, Vec b, Vec c) { return First()(a, b) + c; });
  if (then == Op::kMul)
    return step_of_pair<First>(first, other, [](Vec a, Vec b, Vec c) { return First()(a, b) * c; });
  if (other_first)
    return step_of_pair<First>(first, other, [](Vec a, Vec b, Vec c) { return c - First()(a, b); });
  return step_of_pair<First>(first, other, [](Vec a, Vec b, Vec c) { return First()(a, b) - c; });
}

/// Returns the step of a choice by a comparison, which reads numbers as tiles.
template <class Compare>
TYCHO_SIMD TileFunction choice(From first, Compare) {
  constexpr From kTile = From::kMemory;
  const auto chosen = [](Vec a, Vec b, Vec yes, Vec no) { return choose(Compare()(a, b), yes, no); };
  return first == From::kKept ? step_of<From::kKept, kTile, kTile, kTile>(chosen)
                              : step_of<kTile, kTile, kTile, kTile>(chosen);
}

TileFunction choice_step(Op comparison, From first) {
  switch (comparison) {
    case Op::kLt: return choice(first, [](Vec a, Vec b) { return a < b; });
    case Op::kLe: return choice(first, [](Vec a, Vec b) { return a <= b; });
    case Op::kGt: return choice(first, [](Vec a, Vec b) { return a > b; });
    case Op::kGe: return choice(first, [](Vec a, Vec b) { return a >= b; });
    case Op::kEq: return choice(first, [](Vec a, Vec b) { return a == b; });
    default: return choice(first, [](Vec a, Vec b) { return a != b; });
  }
}

/// Returns the step of two products by numbers, and their sum or difference.
TileFunction sum_of_products(const Placed& first, const Placed& second) {
  const auto with = [&](auto f) __attribute__((always_inline)) {
    constexpr From kKept = From::kKept, kTile = From::kMemory, kNumber = From::kNumber;
    return first.a == kKept ? step_of<kKept, kNumber, kTile, kNumber>(f)
                            : step_of<kTile, kNumber, kTile, kNumber>(f);
  };
  if (second.instruction.then == Op::kAdd)
    return with([](Vec a, Vec b, Vec c, Vec d) { return a * b + c * d; });
  if (second.instruction.fusion == Fusion::kLeft)
    return with([](Vec a, Vec b, Vec c, Vec d) { return c * d - a * b; });
  return with([](Vec a, Vec b, Vec c, Vec d) { return a * b - c * d; });
}

}  // namespace

TileStep pair_step(Placed first, Placed second) {
  const auto is_half = [](const Placed& x) {
    return x.a == From::kHalf || x.b == From::kHalf || x.c == From::kHalf;
  };
  if (first.instruction.to != kRegisters || first.instruction.fusion != Fusion::kNone) return {};
  if (is_half(first) || is_half(second)) return {};
  const TileInstruction &x = first.instruction, &y = second.instruction;
  if (is_comparison(x.op) && y.op == Op::kWhere && second.a == From::kKept && second.b != From::kKept &&
      second.c != From::kKept && first.b != From::kKept)
    return {choice_step(x.op, first.a), y.to, x.a, x.b, y.b, y.c};
  if (!is_quick(x.op)) return {};
  order_operands(first);
  if (y.fusion != Fusion::kNone) {
    order_operands(second);
    const bool by_numbers = first.b == From::kNumber && second.b == From::kNumber && x.op == Op::kMul &&
                            (y.then == Op::kAdd || y.then == Op::kSub);
    if (!by_numbers) return {};
    return {sum_of_products(first, second), y.to, x.a, x.b, y.a, y.b};
  }
  const bool other_first = second.b == From::kKept;
  if (!is_quick(y.op) || other_first == (second.a == From::kKept)) return {};
  const From other = other_first ? second.a : second.b;
  const uint16_t place = other_first ? y.a : y.b;
  const TileFunction function = x.op == Op::kAdd   ? quick_pair<Sum>(first, y.op, other, other_first)
                                : x.op == Op::kMul ? quick_pair<Product>(first, y.op, other, other_first)
                                                   : quick_pair<Difference>(first, y.op, other, other_first);
  return {function, y.to, x.a, x.b, place};
}

}  // namespace tycho::TYCHO_ISA
