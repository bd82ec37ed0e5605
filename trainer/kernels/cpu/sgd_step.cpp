// SGD with momentum on the CPU: every element is read and written once.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"
#include "trainer/kernels/cpu/weights.h"

namespace tycho::TYCHO_ISA {

void sgd_step(int64_t n, SgdScalars s, const float* grad_scale, OptimizedWeights optimized,
              const float* grads, float* momentum, Stream) {
  const float scale = *grad_scale, lr = static_cast<float>(s.lr), mu = static_cast<float>(s.momentum);
  const float decay = static_cast<float>(s.weight_decay);
  with_weight_form<Weights>(optimized, [&](const auto& weights) {
    for_row_blocks(n, 1, [&](int64_t first, int64_t count) {
      for_lanes(count, [&](int64_t offset, auto lanes) {
        const int64_t i = first + offset;
        const Vec weight = weights.read(i, lanes);
        Vec step = load(grads + i, lanes) * scale + weight * decay;
        if (momentum != nullptr) {
          const Vec velocity = load(momentum + i, lanes) * mu + step;
          store(momentum + i, velocity, lanes);
          step = s.nesterov ? step + velocity * mu : velocity;
        }
        weights.write(i, weight - step * lr, lanes);
      });
    });
  });
}

}  // namespace tycho::TYCHO_ISA
