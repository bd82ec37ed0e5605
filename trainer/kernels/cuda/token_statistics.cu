// Statistics of logits on the GPU, a block per row, and their gradient, a thread per pack.
#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/logit_curves.cuh"
#include "trainer/kernels/cuda/row_merge.cuh"

namespace tycho::cuda {
namespace {

constexpr int32_t kIgnored = -100;
constexpr int kThreads = 1024;       // of a row, at most: two rows on a multiprocessor
constexpr float kLowest = -1.0e30f;  // a finite substitute for -inf: multiplied by 0 it is 0

struct Summary {
  float max, sum;  // sum of e^(x - max)
  float below;     // sum of e^(x - max) (x - max)
  float total;     // sum of x
  float largest;   // number of x that equal max
  template <class Function>
  __device__ Summary each(const Function& f) const {
    return {f(max), f(sum), f(below), f(total), f(largest)};
  }
};

/// Returns the summary with its exponentials relative to `most`, at least its maximum.
__device__ Summary relative_to(float most, Summary x) {
  const float under = x.max - most, factor = __expf(under);
  return {most, x.sum * factor, (x.below + under * x.sum) * factor, x.total,
          x.max == most ? x.largest : 0.0f};
}

__device__ Summary merge(Summary a, Summary b) {
  const float most = fmaxf(a.max, b.max);
  a = relative_to(most, a), b = relative_to(most, b);
  return {most, a.sum + b.sum, a.below + b.below, a.total + b.total, a.largest + b.largest};
}

template <int width, class T, class Curve>
__device__ Summary summarise(int vocab, const T* logits, Curve curve) {
  Summary mine{kLowest, 0.0f, 0.0f, 0.0f, 0.0f};
  for (int i = threadIdx.x * width; i < vocab; i += blockDim.x * width) {
    auto x = load<width>(logits + i);
    float most = mine.max;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      x.at[k] = i + k < vocab ? curve(x.at[k]) : -INFINITY;
      most = fmaxf(most, x.at[k]);
    }
    if (most > mine.max) mine = relative_to(most, mine);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float under = x.at[k] - mine.max, e = __expf(under);
      mine.sum += e;
      mine.below += e * fmaxf(under, kLowest);
      mine.total += i + k < vocab ? x.at[k] : 0.0f;
      mine.largest += x.at[k] == mine.max ? 1.0f : 0.0f;
    }
  }
  return block_merge(mine, Summary{kLowest, 0.0f, 0.0f, 0.0f, 0.0f});
}

template <int width, class T, class Curve>
__global__ void __launch_bounds__(kThreads, 2)
    describe(int dim, int vocab, int64_t tokens, const T* logits, const int32_t* targets, float* statistics,
             Curve curve) {
  const int64_t row = blockIdx.x;
  const int32_t target = targets[row];
  logits += row * dim;
  statistics += row;
  if (target == kIgnored) {
    if (threadIdx.x < kTokenStatistics) statistics[threadIdx.x * tokens] = 0.0f;
    return;
  }
  const Summary all = summarise<width>(vocab, logits, curve);
  if (threadIdx.x > 0) return;
  const float log_sum = logf(all.sum), under = all.below / all.sum;
  statistics[kLogSum * tokens] = log_sum;
  statistics[kLogSumExp * tokens] = all.max + log_sum;
  statistics[kTargetLogit * tokens] = target < 0 ? 0.0f : curve(to_float(logits[target]));
  statistics[kMeanLogit * tokens] = all.total / static_cast<float>(vocab);
  statistics[kMaxLogit * tokens] = log_sum == log_sum ? all.max : log_sum;
  statistics[kExpectedBelowMax * tokens] = under;
  statistics[kExpectedLogit * tokens] = all.max + under;
  statistics[kNumLargest * tokens] = all.largest;
}

template <int width, class T, class Curve>
__global__ void differentiate(int dim, int own, int64_t vocab, int64_t tokens, T* logits,
                              const int32_t* targets, const float* statistics, const float* gradients,
                              const float* weight, Curve curve) {
  const int64_t row = blockIdx.x;
  const int32_t target = targets[row];
  logits += row * dim;
  if (target == kIgnored) {
    for (int i = threadIdx.x * width; i < dim; i += blockDim.x * width)
      store<width>(logits + i, Pack<float, width>{});
    return;
  }
  const auto token = [&](int which) { return statistics[which * tokens + row]; };
  const auto by = [&](int which) { return *weight * gradients[which * tokens + row]; };
  const float most = token(kMaxLogit), log_sum = token(kLogSum), slope = by(kExpectedLogit);
  const float factor = by(kLogSumExp) + slope * (1.0f - token(kExpectedBelowMax));
  const float everywhere = by(kMeanLogit) / static_cast<float>(vocab);
  const float at_largest = by(kMaxLogit) / token(kNumLargest), at_target = by(kTargetLogit);
  for (int i = threadIdx.x * width; i < dim; i += blockDim.x * width) {
    auto x = load<width>(logits + i);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float z = curve(x.at[k]), under = z - most;
      const float smooth = __expf(under - log_sum) * (factor + slope * fmaxf(under, kLowest)) + everywhere;
      const float gradient =
          (smooth + (z == most ? at_largest : 0.0f) + (i + k == target ? at_target : 0.0f)) * curve.slope(z);
      x.at[k] = i + k < own ? gradient : 0.0f;
    }
    store<width>(logits + i, x);
  }
}

}  // namespace

void token_statistics(RowsShape shape, Dtype dtype, LogitRules rules, const void* logits,
                      const int32_t* targets, float* statistics, Stream stream) {
  if (shape.rows == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    with_width<T>(packs_fit<T>(shape.dim, logits), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      with_logit_curve(rules, [&](auto curve) {
        describe<kWidth><<<shape.rows, threads_for(shape.dim / kWidth, kThreads), 0, native(stream)>>>(
            static_cast<int>(shape.dim), static_cast<int>(rules.count_of(shape.dim)), shape.rows,
            static_cast<const T*>(logits), targets, statistics, curve);
      });
    });
  });
  check_launch("token_statistics");
}

void token_statistics_backward(RowsShape shape, Dtype dtype, LogitRules rules, int64_t vocab, void* logits,
                               const int32_t* targets, const float* statistics, const float* gradients,
                               const float* weight, Stream stream) {
  if (shape.rows == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    with_width<T>(packs_fit<T>(shape.dim, logits), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      with_logit_curve(rules, [&](auto curve) {
        differentiate<kWidth><<<shape.rows, threads_for(shape.dim / kWidth, kThreads), 0, native(stream)>>>(
            static_cast<int>(shape.dim), static_cast<int>(rules.count_of(shape.dim)), vocab, shape.rows,
            static_cast<T*>(logits), targets, statistics, gradients, weight, curve);
      });
    });
  });
  check_launch("token_statistics_backward");
}

}  // namespace tycho::cuda
