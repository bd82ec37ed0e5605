// Statistics of logits on the CPU, a row at a time, and their gradient.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/logit_curves.h"
#include "trainer/kernels/cpu/parallel.h"

namespace tycho::TYCHO_ISA {
namespace {

constexpr int32_t kIgnored = -100;
constexpr float kLowest = -1.0e30f;  // stands for -infinity where it is multiplied by a probability of 0

/// Column of a matrix [kTokenStatistics, N] or [kLossStatistics, N].
template <class Float>
struct Column {
  Float* first;
  int64_t tokens;
  Float& operator[](int row) const { return first[row * tokens]; }
};

// Summed in segments, so that the rounding of sums does not grow with the vocabulary.
constexpr int64_t kSegment = 2048;

struct Sums {
  Vec exp{}, below{}, logits{}, largest{};  // e^(z - max), that times (z - max), z, 1 where z equals max
};

template <class T, class Curve>
TYCHO_SIMD Sums sums_of(int64_t n, const T* logits, float most, Curve curve) {
  Sums sums;
  for_lanes(n, [&](int64_t i, auto lanes) {
    const Vec z = curve(load(logits + i, lanes)), under = z - most;
    const Vec e = fill_rest(exp(under), lanes, 0.0f);
    sums.exp += e;
    sums.below += e * at_least(broadcast(kLowest), under);
    sums.logits += fill_rest(z, lanes, 0.0f);
    sums.largest += fill_rest(z == most ? broadcast(1.0f) : Vec{}, lanes, 0.0f);
  });
  return sums;
}

template <class T, class Curve>
void describe_row(int64_t vocab, const T* logits, int32_t target, Column<float> to, Curve curve) {
  if (target == kIgnored) {
    for (int row = 0; row < kTokenStatistics; ++row) to[row] = 0;
    return;
  }
  const float most = largest_logit(vocab, logits, curve);
  Sums all;
  for (int64_t first = 0; first < vocab; first += kSegment) {
    const Sums part = sums_of(smaller(kSegment, vocab - first), logits + first, most, curve);
    all.exp += part.exp, all.below += part.below;
    all.logits += part.logits, all.largest += part.largest;
  }
  const float sum = sum_lanes(all.exp), log_sum = __builtin_logf(sum), under = sum_lanes(all.below) / sum;
  to[kLogSum] = log_sum;
  to[kLogSumExp] = most + log_sum;
  to[kTargetLogit] = target < 0 ? 0.0f : curve(load(logits + target, Part{1}))[0];
  to[kMeanLogit] = sum_lanes(all.logits) / static_cast<float>(vocab);
  to[kMaxLogit] = log_sum == log_sum ? most : log_sum;
  to[kExpectedBelowMax] = under;
  to[kExpectedLogit] = most + under;
  to[kNumLargest] = sum_lanes(all.largest);
}

template <class T, class Curve>
void differentiate_row(int64_t dim, int64_t vocab, T* logits, int32_t target, Column<const float> token,
                       Column<const float> by, float weight, Curve curve) {
  if (target == kIgnored) {
    __builtin_memset(logits, 0, dim * sizeof(T));
    return;
  }
  const float most = token[kMaxLogit], log_sum = token[kLogSum], slope = weight * by[kExpectedLogit];
  const float factor = weight * by[kLogSumExp] + slope * (1.0f - token[kExpectedBelowMax]);
  const float everywhere = weight * by[kMeanLogit] / static_cast<float>(vocab);
  const float at_largest = everywhere + weight * by[kMaxLogit] / token[kNumLargest];
  const Vec target_z = target < 0 ? Vec{} : curve(load(logits + target, Part{1}));
  const auto gradient = [&](Vec z) {
    const Vec under = z - most, p = exp(under - log_sum);
    return p * (factor + slope * at_least(broadcast(kLowest), under)) +
           (z == most ? broadcast(at_largest) : broadcast(everywhere));
  };
  for_lanes(dim, [&](int64_t i, auto lanes) {
    const Vec z = curve(load(logits + i, lanes)), g = gradient(z);
    store(logits + i, Curve::kIsIdentity ? g : g * curve.slope(z), lanes);
  });
  if (target >= 0)
    store(logits + target, (gradient(target_z) + weight * by[kTargetLogit]) * curve.slope(target_z), Part{1});
}

template <class T>
void describe(RowsShape shape, LogitRules rules, const void* logits, const int32_t* targets,
              float* statistics) {
  with_logit_curve(rules, [&](auto curve) {
    for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
      for (int64_t row = first; row < first + count; ++row)
        describe_row(rules.count_of(shape.dim), static_cast<const T*>(logits) + row * shape.dim, targets[row],
                     {statistics + row, shape.rows}, curve);
    });
  });
}

template <class T>
void differentiate(RowsShape shape, LogitRules rules, int64_t vocab, void* logits, const int32_t* targets,
                   const float* statistics, const float* gradients, float weight) {
  const int64_t own_vocab = rules.count_of(shape.dim);
  with_logit_curve(rules, [&](auto curve) {
    for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
      for (int64_t row = first; row < first + count; ++row) {
        T* const own = static_cast<T*>(logits) + row * shape.dim;
        differentiate_row(own_vocab, vocab, own, targets[row], {statistics + row, shape.rows},
                          {gradients + row, shape.rows}, weight, curve);
        __builtin_memset(own + own_vocab, 0, (shape.dim - own_vocab) * sizeof(T));
      }
    });
  });
}

}  // namespace

void token_statistics(RowsShape shape, Dtype dtype, LogitRules rules, const void* logits,
                      const int32_t* targets, float* statistics, Stream) {
  const auto run = dtype == Dtype::kFp32 ? &describe<float> : &describe<Bf16>;
  run(shape, rules, logits, targets, statistics);
}

void token_statistics_backward(RowsShape shape, Dtype dtype, LogitRules rules, int64_t vocab, void* logits,
                               const int32_t* targets, const float* statistics, const float* gradients,
                               const float* weight, Stream) {
  const auto run = dtype == Dtype::kFp32 ? &differentiate<float> : &differentiate<Bf16>;
  run(shape, rules, vocab, logits, targets, statistics, gradients, *weight);
}

}  // namespace tycho::TYCHO_ISA
