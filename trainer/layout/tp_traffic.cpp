// Counts gathers and sums in the order of a pass.
#include "trainer/layout/tp_traffic.h"

#include <algorithm>

#include "trainer/layout/adapters.h"

namespace tycho {
namespace {

/// Numbers of tensors that enter and leave regions. With sequence parallel, a tensor is gathered when it
/// enters a region and scattered when it leaves. Without, it is complete when it enters, and summed when it
/// leaves, which moves twice as much.
struct Crossings {
  int64_t enter = 0, leave = 0;
};

Crossings of_block(const DecoderSpec& spec, int64_t block, Recompute mode, bool trained) {
  const int64_t inputs = spec.reuses_x(block) ? 3 : 2;
  Crossings all = {.enter = inputs, .leave = 2};
  if (!trained) return all;
  // Gradients of both results enter, the inputs enter again, and their gradients leave.
  all.enter += 2 + inputs, all.leave += inputs;
  if (mode == Recompute::kSelective) all.enter += 1;
  // The second branch's result is computed again where a norm follows it.
  if (mode == Recompute::kFull) all.enter += inputs, all.leave += spec.norms_after() ? 2 : 1;
  return all;
}

/// Returns how many numbers per token are gathered for norms over all heads: of queries, and of keys if the
/// block has its own; a LayerNorm needs two at a time, an RMSNorm one.
int64_t norm_numbers(const DecoderSpec& spec, int64_t block, Recompute mode, bool trained) {
  if (spec.attention.qk_norm != QkNorm::kTogether) return 0;
  const int64_t passes = !trained ? 1 : mode == Recompute::kFull ? 3 : 2;
  const int64_t numbers = spec.attention.qk.kind == NormKind::kLayer ? 2 : 1;
  return numbers * passes * (spec.reuses_kv(block) ? 1 : 2);
}

}  // namespace

TpTraffic tp_traffic(const DecoderSpec& spec, const std::vector<UnitSpec>& units, BatchShape shape,
                     const RecomputeConfig& recompute, int64_t compute_bytes, const TpShape& tp,
                     const StagePart& part) {
  if (tp.size == 1) return {};
  const size_t lowest = lowest_trained_unit(units);
  Crossings sum;
  if (part.is_last()) sum = {.enter = 1, .leave = 1};  // the head
  if (part.is_first()) sum.leave += 1;                 // the embedding's tokens
  if (part.is_first() && lowest == 0) sum.enter += 1;
  int64_t norms = 0;
  for (int64_t i = 0; i < spec.layers; ++i) {
    if (!part.has_block(i)) continue;
    const bool trained = static_cast<size_t>(i) + 1 >= lowest;
    const Crossings block = of_block(spec, i, recompute.of(i), trained);
    sum.enter += block.enter, sum.leave += block.leave;
    norms += norm_numbers(spec, i, recompute.of(i), trained);
  }
  const int64_t number = shape.tokens() * 4 * (tp.size - 1), pair = 2 * number;  // fp32
  const int64_t of_others = shape.tokens() / tp.size * spec.width * compute_bytes * (tp.size - 1);
  return {of_others * (tp.sequence ? sum.enter + sum.leave : 2 * sum.leave) + number * norms,
          part.is_last() ? pair : 0};
}

int64_t tp_gradient_bytes(const std::vector<UnitSpec>& units, const TpShape& tp) {
  double bytes = 0;
  for (const UnitSpec& unit : units)
    for (const ParamSpec& param : unit.params) {
      if (param.frozen || !param.part) continue;
      const int64_t along = param.shape[static_cast<size_t>(param.part->dim)];
      for (const ParamPart::Run& run : param.part->runs) {
        if (run.sum == ParamPart::Sum::kNone) continue;
        const auto ranks = static_cast<double>(run.sum == ParamPart::Sum::kAll ? tp.size : run.copies);
        bytes += 2 * 4 * static_cast<double>(numel(param.shape) / along * run.size) * (ranks - 1) / ranks;
      }
    }
  return static_cast<int64_t>(bytes);
}

}  // namespace tycho
