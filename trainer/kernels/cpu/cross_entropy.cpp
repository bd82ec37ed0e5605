// The fused classifier on the CPU: a row comes from memory once and is worked on in the cache.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"

namespace tycho::TYCHO_ISA {
namespace {

constexpr int32_t kIgnored = -100;

struct Softmax {
  float max;
  float sum;  // of e^(x - max)
};

template <class T>
float max_of(int64_t n, const T* x) {
  constexpr float kLowest = -__builtin_inff();
  Vec most = broadcast(kLowest);
  for_lanes(n, [&](int64_t i, auto lanes) {
    most = at_least(fill_rest(load(x + i, lanes), lanes, kLowest), most);
  });
  return max_lanes(most);
}

/// With `keep`, e^(x - max) is left where x was: fp32 only, bf16 would be rounded twice.
template <bool keep, class T>
Softmax reduce(int64_t n, T* x) {
  const float most = max_of(n, x);
  Vec sum{};
  for_lanes(n, [&](int64_t i, auto lanes) {
    const Vec e = exp(load(x + i, lanes) - most);
    if constexpr (keep) store(x + i, e, lanes);
    sum += fill_rest(e, lanes, 0.0f);
  });
  return {most, sum_lanes(sum)};
}

template <class T>
void classify_row(int64_t vocab, T* logits, int32_t target, const float* weight, float* loss) {
  if (target == kIgnored) {
    *loss = 0;
    if (weight) __builtin_memset(logits, 0, vocab * sizeof(T));
    return;
  }
  const float target_logit = load(logits + target, Part{1})[0];
  constexpr bool keep = sizeof(T) == sizeof(float);
  const Softmax row = weight ? reduce<keep>(vocab, logits) : reduce<false>(vocab, logits);
  *loss = __builtin_logf(row.sum) + (row.max - target_logit);
  if (!weight) return;
  const float scale = *weight / row.sum;
  for_lanes(vocab, [&](int64_t i, auto lanes) {
    const Vec x = load(logits + i, lanes);
    store(logits + i, (keep ? x : exp(x - row.max)) * scale, lanes);
  });
  store(logits + target, broadcast(__builtin_expf(target_logit - row.max) * scale - *weight), Part{1});
}

template <class T>
void classify(RowsShape shape, T* logits, const int32_t* targets, const float* weight, float* loss) {
  for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row)
      classify_row(shape.dim, logits + row * shape.dim, targets[row], weight, loss + row);
  });
}

}  // namespace

void cross_entropy(RowsShape shape, Dtype dtype, void* logits, const int32_t* targets, const float* weight,
                   bool write_gradient, float* loss, Stream) {
  const float* gradient_weight = write_gradient ? weight : nullptr;
  if (dtype == Dtype::kFp32)
    classify(shape, static_cast<float*>(logits), targets, gradient_weight, loss);
  else
    classify(shape, static_cast<Bf16*>(logits), targets, gradient_weight, loss);
}

}  // namespace tycho::TYCHO_ISA
