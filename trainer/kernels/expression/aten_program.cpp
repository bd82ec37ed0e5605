// Instructions as ATen's operations on fp32 tensors; booleans are tensors of bool.
#include "trainer/kernels/expression/aten_program.h"

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
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>

#include "trainer/kernels/optimizer/muon_step.h"

namespace tycho {
namespace {

constexpr int64_t kChunk = int64_t{1} << 22;

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

Tensor applied(Op op, const Tensor& a, const Tensor& b, const Tensor& c, const float* exponent) {
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

class Chunks {
 public:
  Chunks(const TileProgram& program, const std::vector<ProgramArray>& wanted,
         const std::vector<ProgramTensor>& arrays)
      : program_(program), wanted_(wanted), arrays_(arrays) {
    first_constant_ = static_cast<size_t>(program.num_arrays + program.num_temporaries);
    places_.resize(first_constant_ + static_cast<size_t>(program.num_constants));
  }

  void run(int64_t numel, const at::Device& device) {
    // On the device: some of ATen's kernels multiply by the reciprocal of a divisor that the host has.
    const Tensor constants =
        at::tensor(at::ArrayRef<float>(program_.constants, static_cast<size_t>(program_.num_constants)))
            .to(device);
    for (int64_t i = 0; i < program_.num_constants; ++i)
      places_[first_constant_ + static_cast<size_t>(i)] = constants.narrow(0, i, 1);
    for (int64_t first = 0; first < numel; first += kChunk) run_chunk(first, std::min(kChunk, numel - first));
  }

 private:
  void run_chunk(int64_t first, int64_t count) {
    for (size_t i = 0; i < wanted_.size(); ++i) {
      const ProgramTensor& array = arrays_[i];
      if (!wanted_[i].read) continue;
      if (array.weights)
        places_[i] = (array.weights->master.defined() ? array.weights->master : array.weights->params)
                         .view(-1)
                         .narrow(0, first, count)
                         .to(at::kFloat);
      else
        places_[i] = wanted_[i].one ? array.tensor.view(-1)
                                    : array.tensor.view(-1).narrow(0, first, count).to(at::kFloat);
    }
    for (int32_t i = 0; i < program_.num_instructions; ++i)
      places_[program_.instructions[i].to] = result_of(program_.instructions[i]);
    for (size_t i = 0; i < wanted_.size(); ++i)
      if (wanted_[i].written) write(arrays_[i], first, count, places_[i]);
  }

  Tensor result_of(const TileInstruction& x) const {
    const Tensor &a = places_[x.a], &b = places_[x.b], &c = places_[x.c];
    const float* exponent = x.b >= first_constant_ ? program_.constants + (x.b - first_constant_) : nullptr;
    const Tensor inner = applied(x.op, a, b, c, exponent);
    switch (x.fusion) {
      case Fusion::kNone: return inner;
      case Fusion::kLeft: return applied(x.then, inner, c, {}, nullptr);
      case Fusion::kRight: return applied(x.then, c, inner, {}, nullptr);
      case Fusion::kProducts: return applied(x.then, inner, c * places_[x.d], {}, nullptr);
    }
    return inner;
  }

  static void write(const ProgramTensor& array, int64_t first, int64_t count, const Tensor& value) {
    if (!array.weights) {
      array.tensor.view(-1).narrow(0, first, count).copy_(value);
      return;
    }
    WeightTensors part = *array.weights;
    part.params = part.params.view(-1).narrow(0, first, count);
    if (part.stochastic) {
      // 0 w + value, rounded by the kernel that has the random bits.
      part.place.first += first;
      add_update(-1, 1, part, value.expand({count}).contiguous());
      return;
    }
    part.params.copy_(value);
    if (part.master.defined()) part.master.view(-1).narrow(0, first, count).copy_(value);
  }

  const TileProgram& program_;
  const std::vector<ProgramArray>& wanted_;
  const std::vector<ProgramTensor>& arrays_;
  size_t first_constant_ = 0;
  std::vector<Tensor> places_;
};

}  // namespace

void run_program_by_aten(const TileProgram& program, const std::vector<ProgramArray>& wanted,
                         const std::vector<ProgramTensor>& arrays, int64_t numel) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i].read && !wanted[i].written) continue;
    const Tensor& any = arrays[i].weights ? arrays[i].weights->params : arrays[i].tensor;
    return Chunks(program, wanted, arrays).run(numel, any.device());
  }
}

}  // namespace tycho
