// The fused classifier on the CPU: one pass from memory for maximum and sum, one from cache for the gradient.
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
  Vec most = broadcast(-__builtin_inff());
  for_lanes(n, [&](int64_t i, auto lanes) {
    most = max(fill_rest(load(x + i, lanes), lanes, -__builtin_inff()), most);
  });
  return max_lanes(most);
}

template <class T>
float sum_of_exp(int64_t n, const T* x, float shift) {
  Vec sum{};
  for_lanes(n,
            [&](int64_t i, auto lanes) { sum += fill_rest(exp(load(x + i, lanes) - shift), lanes, 0.0f); });
  return sum_lanes(sum);
}

/// Chunks that fit the first-level cache are read twice, the row once.
template <class T>
Softmax reduce(int64_t n, const T* x) {
  constexpr int64_t kChunk = 2048;
  Softmax row{-__builtin_inff(), 0.0f};
  for (int64_t first = 0; first < n; first += kChunk) {
    const int64_t count = smaller(kChunk, n - first);
    const float most = max_of(count, x + first);
    if (most > row.max) {
      row.sum *= __builtin_expf(row.max - most);
      row.max = most;
    }
    row.sum += sum_of_exp(count, x + first, row.max);
  }
  return row;
}

template <class T>
void classify_row(int64_t vocab, T* logits, int32_t target, const float* weight, float* loss) {
  if (target == kIgnored) {
    *loss = 0;
    if (weight) __builtin_memset(logits, 0, vocab * sizeof(T));
    return;
  }
  const Softmax row = reduce(vocab, logits);
  const Vec target_logit = load(logits + target, Part{1});
  *loss = __builtin_logf(row.sum) + (row.max - target_logit[0]);
  if (!weight) return;
  const float scale = *weight / row.sum;
  const Vec at_target = broadcast(__builtin_expf(target_logit[0] - row.max) * scale - *weight);
  for_lanes(vocab, [&](int64_t i, auto lanes) {
    store(logits + i, exp(load(logits + i, lanes) - row.max) * scale, lanes);
  });
  store(logits + target, at_target, Part{1});
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
