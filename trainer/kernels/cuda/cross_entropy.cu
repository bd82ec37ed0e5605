// The fused classifier on the GPU: a block per row; the second reading of the row, backwards, comes from the
// L2 cache.
#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/logit_curves.cuh"
#include "trainer/kernels/cuda/row_merge.cuh"

namespace tycho::cuda {
namespace {

constexpr int32_t kIgnored = -100;
constexpr int kThreads = 1024;       // of a row, at most: two rows on a multiprocessor
constexpr float kLowest = -3.0e38f;  // a finite substitute for -inf: its differences are never NaN

struct Softmax {
  float max, sum;  // sum of e^(x - max)
  template <class Function>
  __device__ Softmax each(const Function& f) const {
    return {f(max), f(sum)};
  }
};

__device__ Softmax merge(Softmax a, Softmax b) {
  const float most = fmaxf(a.max, b.max);
  return {most, a.sum * __expf(a.max - most) + b.sum * __expf(b.max - most)};
}

template <int width, class T, class Rule>
__device__ Softmax reduce(int vocab, const T* logits, Rule rule) {
  Softmax mine{kLowest, 0.0f};
  for (int i = threadIdx.x * width; i < vocab; i += blockDim.x * width) {
    auto x = load<width>(logits + i);
#pragma unroll
    for (int k = 0; k < width; ++k) x.at[k] = i + k < vocab ? rule(x.at[k]) : -INFINITY;
    float most = x.at[0];
#pragma unroll
    for (int k = 1; k < width; ++k) most = fmaxf(most, x.at[k]);
    if (most > mine.max) {
      mine.sum *= __expf(mine.max - most);
      mine.max = most;
    }
#pragma unroll
    for (int k = 0; k < width; ++k) mine.sum += __expf(x.at[k] - mine.max);
  }
  return block_merge(mine, Softmax{kLowest, 0.0f});
}

template <int width, class T, class Rule>
__global__ void __launch_bounds__(kThreads, 2) classify(int dim, int vocab, T* logits, const int32_t* targets,
                                                        const float* weight, float* loss, Rule rule) {
  const int64_t row = blockIdx.x;
  const int32_t target = targets[row];
  logits += row * dim;
  if (target == kIgnored) {
    if (threadIdx.x == 0) loss[row] = 0;
    if (weight)
      for (int i = threadIdx.x * width; i < dim; i += blockDim.x * width)
        store<width>(logits + i, Pack<float, width>{});
    return;
  }
  const Softmax all = reduce<width>(vocab, logits, rule);
  if (threadIdx.x == 0) loss[row] = logf(all.sum) + (all.max - rule(to_float(logits[target])));
  if (!weight) return;
  __syncthreads();  // the loss is read before its logit is overwritten
  const float factor = *weight, scale = factor / all.sum;
  const int steps = static_cast<int>(ceil_div(dim, blockDim.x * width));
  for (int step = steps - 1; step >= 0; --step) {
    const int i = (step * blockDim.x + threadIdx.x) * width;
    if (i >= dim) continue;
    const int own = target - i, left = vocab - i;  // counted from this pack: fewer registers
    auto x = load<width>(logits + i);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float z = rule(x.at[k]);
      const float gradient = (__expf(z - all.max) * scale - (k == own ? factor : 0.0f)) * rule.slope(z);
      x.at[k] = k < left ? gradient : 0.0f;
    }
    store<width>(logits + i, x);
  }
}

}  // namespace

void cross_entropy(RowsShape shape, Dtype dtype, LogitRules rules, void* logits, const int32_t* targets,
                   const float* weight, bool write_gradient, float* loss, Stream stream) {
  if (shape.rows == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    with_width<T>(packs_fit<T>(shape.dim, logits), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      with_logit_curve(rules, [&](auto rule) {
        classify<kWidth><<<shape.rows, threads_for(shape.dim / kWidth, kThreads), 0, native(stream)>>>(
            static_cast<int>(shape.dim), static_cast<int>(rules.count_of(shape.dim)), static_cast<T*>(logits),
            targets, write_gradient ? weight : nullptr, loss, rule);
      });
    });
  });
  check_launch("cross_entropy");
}

}  // namespace tycho::cuda
