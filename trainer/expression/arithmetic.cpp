// Operations on numbers, by the C library.
#include "trainer/expression/arithmetic.h"

#include <cmath>

namespace tycho {
namespace {

template <class T>
T sign_of(T x) {
  if (x != x) return x;
  return static_cast<T>(x > 0) - static_cast<T>(x < 0);
}

// Which of two equal zeros is returned is part of the definition: vectors do the same.
template <class T>
T smaller_of(T x, T y) {
  return x < y || x != x ? x : y;
}
template <class T>
T larger_of(T x, T y) {
  return x > y || x != x ? x : y;
}

/// torch.pow has its own formulas for one exponent of all elements.
template <class T>
T power(T x, T y, bool scalar_exponent) {
  if (scalar_exponent) {
    if (y == 1) return x;
    if (y == 2) return x * x;
    if (y == 3) return x * x * x;
    if (y == T(0.5)) return std::sqrt(x);
    if (y == T(-0.5)) return 1 / std::sqrt(x);
    if (y == -1) return 1 / x;
    if (y == -2) return 1 / (x * x);
  }
  return std::pow(x, y);
}

template <class T>
T applied(Op op, const Operands<T>& x) {
  switch (op) {
    case Op::kAdd: return x.a + x.b;
    case Op::kSub: return x.a - x.b;
    case Op::kMul: return x.a * x.b;
    case Op::kDiv: return x.a / x.b;
    case Op::kPow: return power(x.a, x.b, x.scalar_exponent);
    case Op::kMin: return smaller_of(x.a, x.b);
    case Op::kMax: return larger_of(x.a, x.b);
    case Op::kFma: return std::fma(x.a, x.b, x.c);
    case Op::kClamp: return smaller_of(larger_of(x.a, x.b), x.c);
    case Op::kNeg: return -x.a;
    case Op::kAbs: return std::fabs(x.a);
    case Op::kSign: return sign_of(x.a);
    case Op::kFloor: return std::floor(x.a);
    case Op::kSqrt: return std::sqrt(x.a);
    case Op::kRsqrt: return 1 / std::sqrt(x.a);
    case Op::kExp: return std::exp(x.a);
    case Op::kLog: return std::log(x.a);
    case Op::kTanh: return std::tanh(x.a);
    case Op::kSigmoid: return 1 / (1 + std::exp(-x.a));
    case Op::kErf: return std::erf(x.a);
    case Op::kLt: return x.a < x.b;
    case Op::kLe: return x.a <= x.b;
    case Op::kGt: return x.a > x.b;
    case Op::kGe: return x.a >= x.b;
    case Op::kEq: return x.a == x.b;
    case Op::kNe: return x.a != x.b;
    case Op::kAnd: return x.a != 0 && x.b != 0;
    case Op::kOr: return x.a != 0 || x.b != 0;
    case Op::kNot: return x.a == 0;
    case Op::kWhere:
    case Op::kEvery: return x.a != 0 ? x.b : x.c;
    default: return x.a;  // kBroadcast
  }
}

}  // namespace

double apply(Op op, const Operands<double>& x) { return applied(op, x); }
float apply(Op op, const Operands<float>& x) { return applied(op, x); }

}  // namespace tycho
