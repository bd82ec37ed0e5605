// Early parts see few keys and late ones many; pairs of both give every rank the same work.
#include "trainer/layout/cp_part.h"

#include <algorithm>

#include "trainer/layout/adapters.h"

namespace tycho {

std::array<CpSpan, 2> cp_spans(int64_t seq, const CpShape& cp) {
  if (cp.size == 1) return {{{0, seq}, {seq, 0}}};
  const int64_t part = seq / (2 * cp.size);
  return {{{cp.rank * part, part}, {(2 * cp.size - 1 - cp.rank) * part, part}}};
}

void for_cp_runs(int64_t seq, const CpShape& cp, int64_t first, int64_t count,
                 const std::function<void(int64_t i, int64_t j, int64_t n)>& run) {
  if (cp.size == 1) return run(first, first, count);
  const std::array<CpSpan, 2> spans = cp_spans(seq, cp);
  const int64_t part = spans[0].count, end = first + count;
  for (int64_t i = first; i < end;) {
    const int64_t number = i / part, inside = i % part, n = std::min(part - inside, end - i);
    run(i, number / 2 * seq + spans[static_cast<size_t>(number % 2)].first + inside, n);
    i += n;
  }
}

int64_t cp_traffic(const DecoderSpec& spec, const std::vector<UnitSpec>& units, BatchShape shape,
                   const RecomputeConfig& recompute, int64_t compute_bytes, const CpShape& cp,
                   const StagePart& part) {
  const size_t lowest = lowest_trained_unit(units);
  int64_t rows = 0, gradients = 0;  // number of times that the rows and gradients of all others arrive
  for (int64_t i = 0; i < spec.layers; ++i) {
    if (!part.has_block(i)) continue;
    rows += 1;
    if (static_cast<size_t>(i) + 1 < lowest) continue;
    rows += recompute.of(i) == Recompute::kFull ? 2 : 1;
    gradients += 1;
  }
  const int64_t numbers = shape.tokens() / cp.size * 2 * spec.attention.kv_heads * spec.attention.head_dim;
  const int64_t others = cp.size - 1;
  // On a ring, gradients pass around the whole ring, in fp32.
  return numbers * (rows * others * compute_bytes +
                    gradients * (cp.ring ? cp.size * int64_t{sizeof(float)} : others * compute_bytes));
}

}  // namespace tycho
