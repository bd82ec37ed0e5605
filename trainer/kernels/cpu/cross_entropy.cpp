// The fused classifier on the CPU: a row is loaded from memory once and processed in the cache.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/logit_curves.h"
#include "trainer/kernels/cpu/parallel.h"

namespace tycho::TYCHO_ISA {
namespace {

constexpr int32_t kIgnored = -100;

struct Softmax {
  float max;
  float sum;  // sum of e^(x - max)
};

/// Computes maximum and sum of a row. With `keep`, x is overwritten by e^(x - max): fp32 only, because bf16
/// would be rounded twice.
template <bool keep, class T, class Rule>
Softmax reduce(int64_t n, T* x, Rule rule) {
  const float most = largest_logit(n, x, rule);
  Vec sum{};
  for_lanes(n, [&](int64_t i, auto lanes) {
    const Vec e = exp(rule(load(x + i, lanes)) - most);
    if constexpr (keep) store(x + i, e, lanes);
    sum += fill_rest(e, lanes, 0.0f);
  });
  return {most, sum_lanes(sum)};
}

template <class T, class Rule>
void classify_row(int64_t vocab, T* logits, int32_t target, const float* weight, float* loss, Rule rule) {
  if (target == kIgnored) {
    *loss = 0;
    if (weight) __builtin_memset(logits, 0, vocab * sizeof(T));
    return;
  }
  const Vec target_logit = rule(load(logits + target, Part{1}));
  constexpr bool keep = sizeof(T) == sizeof(float) && Rule::kIsIdentity;
  const Softmax row = weight ? reduce<keep>(vocab, logits, rule) : reduce<false>(vocab, logits, rule);
  *loss = __builtin_logf(row.sum) + (row.max - target_logit[0]);
  if (!weight) return;
  const float scale = *weight / row.sum;
  for_lanes(vocab, [&](int64_t i, auto lanes) {
    const Vec x = load(logits + i, lanes), z = keep ? x : rule(x);
    const Vec gradient = (keep ? x : exp(z - row.max)) * scale;
    store(logits + i, Rule::kIsIdentity ? gradient : gradient * rule.slope(z), lanes);
  });
  const Vec gradient = __builtin_expf(target_logit[0] - row.max) * scale - *weight + Vec{};
  store(logits + target, gradient * rule.slope(target_logit), Part{1});
}

template <class T, class Rule>
void classify(RowsShape shape, int64_t vocab, T* logits, const int32_t* targets, const float* weight,
              float* loss, Rule rule) {
  for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      T* const own = logits + row * shape.dim;
      classify_row(vocab, own, targets[row], weight, loss + row, rule);
      if (weight) __builtin_memset(own + vocab, 0, (shape.dim - vocab) * sizeof(T));
    }
  });
}

template <class T>
void classify_by(LogitRules rules, RowsShape shape, void* logits, const int32_t* targets, const float* weight,
                 float* loss) {
  with_logit_curve(rules, [&](auto rule) {
    classify(shape, rules.count_of(shape.dim), static_cast<T*>(logits), targets, weight, loss, rule);
  });
}

}  // namespace

void cross_entropy(RowsShape shape, Dtype dtype, LogitRules rules, void* logits, const int32_t* targets,
                   const float* weight, bool write_gradient, float* loss, Stream) {
  const auto run = dtype == Dtype::kFp32 ? &classify_by<float> : &classify_by<Bf16>;
  run(rules, shape, logits, targets, write_gradient ? weight : nullptr, loss);
}

}  // namespace tycho::TYCHO_ISA
