// Elementwise steps of Muon on the CPU.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"
#include "trainer/kernels/cpu/weights.h"

namespace tycho::TYCHO_ISA {
namespace {

template <class T>
void momentum_update(int64_t n, float mu, float rest, bool nesterov, float scale, const float* grads,
                     float* buffer, T* update) {
  for_row_blocks(n, 1, [&](int64_t first, int64_t count) {
    for_lanes(count, [&](int64_t offset, auto lanes) {
      const int64_t i = first + offset;
      const Vec g = load(grads + i, lanes) * scale;
      const Vec mean = load(buffer + i, lanes) * mu + g * rest;
      store(buffer + i, mean, lanes);
      store(update + i, nesterov ? g * rest + mean * mu : mean, lanes);
    });
  });
}

template <class T, WeightForm form>
void add(int64_t n, float step_size, float keep, const Weights<form>& weights, const T* update) {
  for_row_blocks(n, 1, [&](int64_t first, int64_t count) {
    for_lanes(count, [&](int64_t offset, auto lanes) {
      const int64_t i = first + offset;
      weights.write(i, weights.read(i, lanes) * keep - load(update + i, lanes) * step_size, lanes);
    });
  });
}

}  // namespace

void muon_momentum(int64_t n, double momentum, bool nesterov, const float* grad_scale, const float* grads,
                   float* buffer, Dtype dtype, void* update, Stream) {
  const float mu = static_cast<float>(momentum), rest = static_cast<float>(1 - momentum);
  if (dtype == Dtype::kFp32)
    momentum_update(n, mu, rest, nesterov, *grad_scale, grads, buffer, static_cast<float*>(update));
  else
    momentum_update(n, mu, rest, nesterov, *grad_scale, grads, buffer, static_cast<Bf16*>(update));
}

void add_update(int64_t n, double step_size, double decay, OptimizedWeights optimized, Dtype dtype,
                const void* update, Stream) {
  const float size = static_cast<float>(step_size), keep = static_cast<float>(1 - decay);
  with_weight_form<Weights>(optimized, [&](const auto& weights) {
    if (dtype == Dtype::kFp32)
      add(n, size, keep, weights, static_cast<const float*>(update));
    else
      add(n, size, keep, weights, static_cast<const Bf16*>(update));
  });
}

}  // namespace tycho::TYCHO_ISA
