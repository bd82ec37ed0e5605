// The loops of a program's instructions. Every vector of all operands is read before its result is written.
#include "trainer/kernels/cpu/expression/tile_instructions.h"

#include "trainer/kernels/cpu/expression/functions.h"

namespace tycho::TYCHO_ISA {
namespace {

/// Returns the loop of a function of `arguments` vectors, which has no state. Short ones are written out.
template <int arguments, class F>
TYCHO_SIMD TileFunction loop_of(F) {
  return [](const TileInstruction& instruction, float* const* places) {
    float* to = places[instruction.to];
    const float *a = places[instruction.a], *b = places[instruction.b], *c = places[instruction.c],
                *d = places[instruction.d];
#pragma GCC unroll 8
    for (int64_t i = 0; i < kTile; i += kLanes) {
      const Full lanes;
      if constexpr (arguments == 2) store(to + i, F()(load(a + i, lanes), load(b + i, lanes)), lanes);
      if constexpr (arguments == 3)
        store(to + i, F()(load(a + i, lanes), load(b + i, lanes), load(c + i, lanes)), lanes);
      if constexpr (arguments == 4)
        store(to + i, F()(load(a + i, lanes), load(b + i, lanes), load(c + i, lanes), load(d + i, lanes)),
              lanes);
    }
  };
}

/// Returns the loop of a function of one vector.
template <class F>
TYCHO_SIMD TileFunction loop_of_one(F) {
  return [](const TileInstruction& instruction, float* const* places) {
    float* to = places[instruction.to];
    const float* a = places[instruction.a];
    for (int64_t i = 0; i < kTile; i += kLanes) store(to + i, F()(load(a + i, Full{})), Full{});
  };
}

TYCHO_SIMD Vec mask_of(Ints mask) { return (Vec)mask; }

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

/// Returns body(the basic operation).
template <class Body>
TYCHO_SIMD TileFunction with_basic(Op op, const Body& body) {
  switch (op) {
    case Op::kAdd: return body(Sum{});
    case Op::kSub: return body(Difference{});
    case Op::kMul: return body(Product{});
    default: return body(Quotient{});
  }
}

TileFunction fused_loop(const TileInstruction& instruction) {
  if (instruction.fusion == Fusion::kProducts) {
    if (instruction.then == Op::kAdd)
      return loop_of<4>([](Vec a, Vec b, Vec c, Vec d) { return a * b + c * d; });
    return loop_of<4>([](Vec a, Vec b, Vec c, Vec d) { return a * b - c * d; });
  }
  return with_basic(instruction.op, [&]<class First>(First) {
    return with_basic(instruction.then, [&]<class Second>(Second) {
      if (instruction.fusion == Fusion::kLeft)
        return loop_of<3>([](Vec a, Vec b, Vec c) { return Second()(First()(a, b), c); });
      return loop_of<3>([](Vec a, Vec b, Vec c) { return Second()(c, First()(a, b)); });
    });
  });
}

/// torch.pow has its own formulas for one exponent of all elements.
TileFunction power_loop(const float* exponent) {
  const float y = exponent ? *exponent : 0.0f;
  if (y == 1) return loop_of_one([](Vec a) { return a; });
  if (y == 2) return loop_of_one([](Vec a) { return a * a; });
  if (y == 3) return loop_of_one([](Vec a) { return a * a * a; });
  if (y == 0.5f) return loop_of_one([](Vec a) { return square_root(a); });
  if (y == -0.5f) return loop_of_one([](Vec a) { return 1.0f / square_root(a); });
  if (y == -1) return loop_of_one([](Vec a) { return 1.0f / a; });
  if (y == -2) return loop_of_one([](Vec a) { return 1.0f / (a * a); });
  return loop_of<2>([](Vec a, Vec b) { return power_each(a, b); });
}

}  // namespace

TileFunction tile_function(const TileInstruction& instruction, const float* exponent) {
  if (instruction.fusion != Fusion::kNone) return fused_loop(instruction);
  switch (instruction.op) {
    case Op::kPow: return power_loop(exponent);
    case Op::kNeg: return loop_of_one([](Vec a) { return -a; });
    case Op::kAbs: return loop_of_one([](Vec a) { return magnitude(a); });
    case Op::kSign: return loop_of_one([](Vec a) { return sign_of(a); });
    case Op::kFloor: return loop_of_one([](Vec a) { return round_down(a); });
    case Op::kSqrt: return loop_of_one([](Vec a) { return square_root(a); });
    case Op::kRsqrt: return loop_of_one([](Vec a) { return 1.0f / square_root(a); });
    case Op::kExp: return loop_of_one([](Vec a) { return wide_exp(a); });
    case Op::kLog: return loop_of_one([](Vec a) { return logarithm(a); });
    case Op::kTanh: return loop_of_one([](Vec a) { return exact_tanh(a); });
    case Op::kSigmoid: return loop_of_one([](Vec a) { return logistic(a); });
    case Op::kErf: return loop_of_one([](Vec a) { return error_function(a); });
    case Op::kMin: return loop_of<2>([](Vec a, Vec b) { return smaller_of(a, b); });
    case Op::kMax: return loop_of<2>([](Vec a, Vec b) { return larger_of(a, b); });
    case Op::kLt: return loop_of<2>([](Vec a, Vec b) { return mask_of(a < b); });
    case Op::kLe: return loop_of<2>([](Vec a, Vec b) { return mask_of(a <= b); });
    case Op::kGt: return loop_of<2>([](Vec a, Vec b) { return mask_of(a > b); });
    case Op::kGe: return loop_of<2>([](Vec a, Vec b) { return mask_of(a >= b); });
    case Op::kEq: return loop_of<2>([](Vec a, Vec b) { return mask_of(a == b); });
    case Op::kNe: return loop_of<2>([](Vec a, Vec b) { return mask_of(a != b); });
    case Op::kAnd: return loop_of<2>([](Vec a, Vec b) { return mask_of((Ints)a & (Ints)b); });
    case Op::kOr: return loop_of<2>([](Vec a, Vec b) { return mask_of((Ints)a | (Ints)b); });
    case Op::kNot: return loop_of_one([](Vec a) { return mask_of(~(Ints)a); });
    case Op::kFma: return loop_of<3>([](Vec a, Vec b, Vec c) { return fused_multiply_add(a, b, c); });
    case Op::kClamp: return loop_of<3>([](Vec a, Vec b, Vec c) { return smaller_of(larger_of(a, b), c); });
    case Op::kWhere:
    case Op::kEvery: return loop_of<3>([](Vec a, Vec b, Vec c) { return choose((Ints)a, b, c); });
    case Op::kBroadcast: return loop_of_one([](Vec a) { return a; });
    default: return with_basic(instruction.op, []<class Basic>(Basic basic) { return loop_of<2>(basic); });
  }
}

}  // namespace tycho::TYCHO_ISA
