// Steps of programs: functions over eight vectors, whose operands are in registers, tiles or numbers.
#pragma once
#include "trainer/expression/tile_code.h"
#include "trainer/kernels/cpu/expression/tile_function.h"
#include "trainer/kernels/cpu/simd.h"

namespace tycho::TYCHO_ISA {

/// Number of elements of eight vectors.
inline constexpr int64_t kStepElements = 8 * kLanes;
static_assert(kTile % kStepElements == 0);

template <From from>
struct Operand {
  const float* tile;
  const Bf16* half;
  Vec number;

  TYCHO_SIMD_MEMBER Operand(float* const* places, uint16_t place, int64_t at) {
    if constexpr (from == From::kMemory) tile = places[place] + at;
    if constexpr (from == From::kHalf) half = reinterpret_cast<const Bf16*>(places[place]) + at;
    if constexpr (from == From::kNumber) number = broadcast(*places[place]);
  }
  TYCHO_SIMD_MEMBER Vec operator()(int vector, Vec kept) const {
    if constexpr (from == From::kKept) return kept;
    if constexpr (from == From::kNumber) return number;
    if constexpr (from == From::kHalf) return load(half + vector * kLanes, Full{});
    return load(tile + vector * kLanes, Full{});
  }
};

/// Does a function of up to four vectors, which has no state.
template <class F, From a_from, From b_from, From c_from, From d_from>
static void function_step(const TileStep* step, float* const* places, int64_t at, Vec v0, Vec v1, Vec v2,
                          Vec v3, Vec v4, Vec v5, Vec v6, Vec v7) {
  const Operand<a_from> a(places, step->a, at);
  const Operand<b_from> b(places, step->b, at);
  const Operand<c_from> c(places, step->c, at);
  const Operand<d_from> d(places, step->d, at);
  const auto done = [&](int i, Vec v) __attribute__((always_inline)) {
    if constexpr (requires(F f) { f(v); }) return F()(a(i, v));
    if constexpr (requires(F f) { f(v, v); }) return F()(a(i, v), b(i, v));
    if constexpr (requires(F f) { f(v, v, v); }) return F()(a(i, v), b(i, v), c(i, v));
    if constexpr (requires(F f) { f(v, v, v, v); }) return F()(a(i, v), b(i, v), c(i, v), d(i, v));
  };
  v0 = done(0, v0), v1 = done(1, v1), v2 = done(2, v2), v3 = done(3, v3);
#if defined(__AVX2__) && !defined(TYCHO_EMULATED)
  // Keeps the compiler from mixing all eight vectors of a function whose intermediate results would not fit.
  if constexpr (requires { F::kInHalves; })
    asm volatile("" : "+v"(v4), "+v"(v5), "+v"(v6), "+v"(v7) : "v"(v0), "v"(v1), "v"(v2), "v"(v3) : "memory");
#endif
  v4 = done(4, v4), v5 = done(5, v5), v6 = done(6, v6), v7 = done(7, v7);
  if (step->to != kRegisters) {
    float* to = places[step->to] + at;
    store(to, v0, Full{}), store(to + kLanes, v1, Full{});
    store(to + 2 * kLanes, v2, Full{}), store(to + 3 * kLanes, v3, Full{});
    store(to + 4 * kLanes, v4, Full{}), store(to + 5 * kLanes, v5, Full{});
    store(to + 6 * kLanes, v6, Full{}), store(to + 7 * kLanes, v7, Full{});
  }
  return step[1].function(step + 1, places, at, v0, v1, v2, v3, v4, v5, v6, v7);
}

template <From a, From b = From::kKept, From c = From::kKept, From d = From::kKept, class F>
TYCHO_SIMD TileFunction step_of(F) {
  return function_step<F, a, b, c, d>;
}

/// An instruction, and where its operands are.
struct Placed {
  TileInstruction instruction;
  From a, b, c;
};

/// Returns one step for two neighbouring instructions, if the second needs the first one's result and nobody
/// else does; its function is null where there is none.
TileStep pair_step(Placed first, Placed second);

struct Sum {
  TYCHO_SIMD_MEMBER Vec operator()(Vec a, Vec b) const { return a + b; }
};
struct Difference {
  TYCHO_SIMD_MEMBER Vec operator()(Vec a, Vec b) const { return a - b; }
};
struct Product {
  TYCHO_SIMD_MEMBER Vec operator()(Vec a, Vec b) const { return a * b; }
};
struct Quotient {
  TYCHO_SIMD_MEMBER Vec operator()(Vec a, Vec b) const { return a / b; }
};

}  // namespace tycho::TYCHO_ISA
