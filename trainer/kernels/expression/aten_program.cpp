// Instructions as ATen's operations, over chunks of the elements.
#include "trainer/kernels/expression/aten_program.h"

#include <ATen/ops/tensor.h>

#include <algorithm>

#include "trainer/kernels/expression/aten_operation.h"
#include "trainer/kernels/optimizer/muon_step.h"

namespace tycho {
namespace {

constexpr int64_t kChunk = int64_t{1} << 22;

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
    const Tensor inner = aten_operation(x.op, a, b, c, exponent);
    switch (x.fusion) {
      case Fusion::kNone: return inner;
      case Fusion::kLeft: return aten_operation(x.then, inner, c, {});
      case Fusion::kRight: return aten_operation(x.then, c, inner, {});
      case Fusion::kProducts: return aten_operation(x.then, inner, c * places_[x.d], {});
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
