// Attention of one token on the CPU: its scores over a cache of keys, their softmax, and the sum of values.
#include "trainer/kernels/cpu/attention/attention_tiles.h"
#include "trainer/kernels/cpu/kernels.h"

namespace tycho::TYCHO_ISA {
namespace {

constexpr int kAtOnce = 4;  // rows of keys or values with a sum of their own

/// Calls body(first, count) for rows 0 to n - 1, kAtOnce at a time; the rest one by one.
template <class Body>
TYCHO_SIMD void for_rows(int64_t n, const Body& body) {
  int64_t row = 0;
  for (; row + kAtOnce <= n; row += kAtOnce) body(row, Fixed<kAtOnce>{});
  for (; row < n; ++row) body(row, Fixed<1>{});
}

/// scores[i] = scale q · key i.
template <class T>
void multiply_keys(int64_t d, float scale, const T* q, int64_t keys, const float* key_SD, float* scores) {
  for_rows(keys, [&](int64_t first, auto rows) {
    Vec sums[rows.count]{};
    for_lanes(d, [&](int64_t i, auto lanes) {
      const Vec x = load(q + i, lanes);
      for (int64_t row = 0; row < rows.count; ++row)
        sums[row] += x * load(key_SD + (first + row) * d + i, lanes);
    });
    for (int64_t row = 0; row < rows.count; ++row) scores[first + row] = sum_lanes(sums[row]) * scale;
  });
}

/// Replaces scores by e^(score - largest). Those up to a whole vector are -infinity. Returns their sum.
float soften(int64_t keys, float* scores) {
  Vec most = broadcast(-kInfinity);
  for (int64_t i = 0; i < keys; i += kLanes) most = at_least(load(scores + i, Full{}), most);
  const float largest = max_lanes(most);
  Vec sum{};
  for (int64_t i = 0; i < keys; i += kLanes) {
    const Vec p = exp(load(scores + i, Full{}) - largest);
    sum += p;
    store(scores + i, p, Full{});
  }
  return sum_lanes(sum);
}

/// out = factor times the sum of p[i] value i.
template <class T>
void add_values(int64_t d, int64_t keys, const float* p, const float* value_SD, float factor, T* out) {
  for_lanes(d, [&](int64_t i, auto lanes) {
    Vec sums[kAtOnce]{};
    for_rows(keys, [&](int64_t first, auto rows) {
      for (int64_t row = 0; row < rows.count; ++row)
        sums[row] += p[first + row] * load(value_SD + (first + row) * d + i, lanes);
    });
    store(out + i, ((sums[0] + sums[1]) + (sums[2] + sums[3])) * factor, lanes);
  });
}

template <class T>
void attend(const AttentionShape& s, const ScoreRules& rules, const T* q, const CachedKeys& cache, T* out) {
  const int64_t group = s.heads / s.kv_heads, d = s.head_dim;
  const int64_t hidden = rules.window < 0 ? 0 : larger(0, cache.count - 1 - rules.window),
                keys = cache.count - hidden;
  for_blocks(s.batch * s.kv_heads, s.batch * s.heads * keys * d, [&](int64_t number) {
    const int64_t sequence = number / s.kv_heads, kv_head = number % s.kv_heads;
    const int64_t first = sequence * cache.sequence_step + kv_head * cache.head_step + hidden * d;
    auto* scores = static_cast<float*>(thread_memory((keys + kTileTokens) * int64_t{sizeof(float)}));
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      const int64_t at = (sequence * s.heads + head) * d;
      multiply_keys(d, rules.scale, q + at, keys, cache.keys + first, scores);
      for (int64_t key = 0; key < keys; key += kTileTokens)
        score_tile(rules, head, nullptr, cache.count - 1, 1, hidden + key, smaller(kTileTokens, keys - key),
                   scores + key, nullptr);
      const float sum = soften(keys, scores);
      add_values(d, keys, scores, cache.values + first, 1.0f / sum, out + at);
    }
  });
}

}  // namespace

void attention_cached(AttentionShape shape, ScoreRules rules, Dtype dtype, const void* q, CachedKeys cache,
                      void* out, Stream) {
  if (dtype == Dtype::kFp32)
    attend(shape, rules, static_cast<const float*>(q), cache, static_cast<float*>(out));
  else
    attend(shape, rules, static_cast<const Bf16*>(q), cache, static_cast<Bf16*>(out));
}

}  // namespace tycho::TYCHO_ISA
