// Operations on fp32 tensors; booleans are tensors of bool.
#include "trainer/kernels/expression/aten_operation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/log.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>

namespace tycho {
namespace {

Tensor as_boolean(const Tensor& x) { return x.scalar_type() == at::kBool ? x : x != 0; }

Tensor smaller_of(const Tensor& x, const Tensor& y) { return at::where((x < y).logical_or(x != x), x, y); }
Tensor larger_of(const Tensor& x, const Tensor& y) { return at::where((x > y).logical_or(x != x), x, y); }

/// a b + c, rounded once: the sum in double is rounded to odd, so that rounding it to fp32 is right.
Tensor fused_multiply_add(const Tensor& a, const Tensor& b, const Tensor& c) {
  const Tensor product = a.to(at::kDouble) * b.to(at::kDouble), added = c.to(at::kDouble);
  const Tensor sum = product + added, part = sum - product;
  const Tensor error = (product - (sum - part)) + (added - part);
  const Tensor bits = sum.view(at::kLong);
  const Tensor is_even = (bits.bitwise_and(1) == 0).logical_and(error.abs() > 0);
  const Tensor towards_error = ((error > 0) == (sum > 0)).to(at::kLong) * 2 - 1;
  return at::where(is_even, bits + towards_error, bits).view(at::kDouble).to(at::kFloat);
}

/// Rounded right on every device; some libraries for vectors of fp32 are an ulp off.
Tensor square_root(const Tensor& x) { return at::sqrt(x.to(at::kDouble)).to(at::kFloat); }

/// torch.pow has its own formulas for one exponent of all elements.
Tensor power(const Tensor& x, const Tensor& y, const float* exponent) {
  const float n = exponent ? *exponent : 0.0f;
  if (n == 1) return x.clone();
  if (n == 2) return x * x;
  if (n == 3) return x * x * x;
  if (n == 0.5f) return square_root(x);
  if (n == -0.5f) return square_root(x).reciprocal();
  if (n == -1) return x.reciprocal();
  if (n == -2) return (x * x).reciprocal();
  return at::pow(x, y);
}

}  // namespace

Tensor aten_operation(Op op, const Tensor& a, const Tensor& b, const Tensor& c, const float* exponent) {
  switch (op) {
    case Op::kAdd: return a + b;
    case Op::kSub: return a - b;
    case Op::kMul: return a * b;
    case Op::kDiv: return a / b;
    case Op::kPow: return power(a, b, exponent);
    case Op::kMin: return smaller_of(a, b);
    case Op::kMax: return larger_of(a, b);
    case Op::kFma: return fused_multiply_add(a, b, c);
    case Op::kClamp: return smaller_of(larger_of(a, b), c);
    case Op::kNeg: return -a;
    case Op::kAbs: return at::abs(a);
    case Op::kSign: return at::where(a == a, at::sign(a), a);
    case Op::kFloor: return at::floor(a);
    case Op::kSqrt: return square_root(a);
    case Op::kRsqrt: return square_root(a).reciprocal();
    case Op::kExp: return at::exp(a);
    case Op::kLog: return at::log(a);
    case Op::kTanh: return at::tanh(a);
    case Op::kSigmoid: return at::sigmoid(a);
    case Op::kErf: return at::erf(a);
    case Op::kLt: return a < b;
    case Op::kLe: return a <= b;
    case Op::kGt: return a > b;
    case Op::kGe: return a >= b;
    case Op::kEq: return a == b;
    case Op::kNe: return a != b;
    case Op::kAnd: return as_boolean(a).logical_and(as_boolean(b));
    case Op::kOr: return as_boolean(a).logical_or(as_boolean(b));
    case Op::kNot: return as_boolean(a).logical_not();
    case Op::kWhere:
    case Op::kEvery: return at::where(as_boolean(a), b, c);
    default: return a.clone();  // kBroadcast: the array may be overwritten
  }
}

}  // namespace tycho
