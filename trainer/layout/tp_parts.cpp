// Cuts the sections of a parameter, and maps a rank's part to the whole.
#include "trainer/layout/tp_parts.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/layout/fp8_layers.h"

namespace tycho {
namespace {

using Sum = ParamPart::Sum;

Sum sum_of(TpCut::Gradient gradient, const TpShape& tp) {
  switch (gradient) {
    case TpCut::Gradient::kWhole: return Sum::kNone;
    case TpCut::Gradient::kOfTokens: return tp.sequence ? Sum::kAll : Sum::kNone;
    case TpCut::Gradient::kOfHeads: return Sum::kAll;
  }
  return Sum::kNone;
}

/// Returns the part of a parameter whose shape is that of the whole.
ParamPart part_of(const ParamSpec& param, const TpShape& tp) {
  ParamPart part{.whole = param.shape, .dim = param.tp.dim, .runs = {}};
  if (param.tp.sections.empty()) {
    part.runs = {{0, 0, param.shape.front(), tp.rank == 0, tp.size, sum_of(param.tp.gradient, tp)}};
    return part;
  }
  int64_t here = 0, there = 0;
  for (const TpCut::Section& section : param.tp.sections) {
    const TpItems items = tp_items(section.count, tp);
    const int64_t size = items.size() * section.width;
    part.runs.push_back({here, there + items.begin * section.width, size, items.counts, items.copies,
                         items.copies > 1 ? Sum::kCopies : Sum::kNone});
    here += size, there += section.count * section.width;
  }
  const int64_t wanted = param.shape[static_cast<size_t>(part.dim)];
  TYCHO_CHECK(there == wanted, "[layout] the sections of {} have {} rows or columns, and it has {}",
              param.name, there, wanted);
  return part;
}

/// Returns the number of elements between two neighbours along the dim of a parameter's part.
int64_t step_of(const ParamSpec& spec) {
  int64_t step = 1;
  for (size_t d = static_cast<size_t>(spec.part->dim) + 1; d < spec.shape.size(); ++d) step *= spec.shape[d];
  return step;
}

}  // namespace

TpItems tp_items(int64_t count, const TpShape& tp) {
  if (count < tp.size && tp.size % count == 0) {
    const int64_t copies = tp.size / count, item = tp.rank / copies;
    return {item, item + 1, tp.rank % copies == 0, copies};
  }
  const int64_t each = count / tp.size, more = count % tp.size;
  const auto first = [&](int64_t rank) { return rank * each + std::min(rank, more); };
  return {first(tp.rank), first(tp.rank + 1)};
}

DecoderSpec tp_spec(DecoderSpec spec, const TpShape& tp) {
  if (tp.size > 1) spec.fp8 = named_fp8(spec);  // by the sizes of whole layers
  const TpItems heads = tp_items(spec.attention.heads, tp), tokens = tp_items(spec.vocab_size, tp);
  spec.attention.first_head = heads.begin, spec.attention.heads = heads.size();
  spec.attention.kv_heads = tp_items(spec.attention.kv_heads, tp).size();
  const TpItems hidden = tp_items(spec.ffn.width, tp);
  spec.ffn.first_hidden = hidden.begin, spec.ffn.width = hidden.size();
  spec.first_vocab = tokens.begin, spec.vocab_size = tokens.size();
  return spec;
}

ParamSpec tp_part(ParamSpec param, const TpShape& tp) {
  param.shape = param.whole_shape();
  param.part = part_of(param, tp);
  const ParamPart::Run& last = param.part->runs.back();
  param.shape[static_cast<size_t>(param.part->dim)] = last.here + last.size;
  return param;
}

std::vector<UnitSpec> tp_units(std::vector<UnitSpec> units, const TpShape& tp, bool on_gpu) {
  for (UnitSpec& unit : units)
    for (size_t i = 0; i < unit.params.size(); ++i) {
      ParamSpec& param = unit.params[i];
      if (tp.size > 1) param = tp_part(std::move(param), tp);
      if (!param.gives_logits) continue;
      param.zero_rows = padded_rows(param.shape.front(), on_gpu) - param.shape.front();
      if (param.zero_rows > 0) unit.stacks.push_back({static_cast<int>(i), 1});
    }
  return units;
}

int64_t padded_rows(int64_t rows, bool on_gpu) { return on_gpu ? (rows + 63) / 64 * 64 : rows; }

std::vector<Extent> counted(const Extent& extent) {
  if (!extent.spec->part) return {extent};
  const std::vector<ParamPart::Run>& runs = extent.spec->part->runs;
  const auto counts = [](const ParamPart::Run& run) { return run.counts; };
  if (std::all_of(runs.begin(), runs.end(), counts)) return {extent};
  std::vector<Extent> list;
  const int64_t step = step_of(*extent.spec);  // the dim is 0: runs are spans of the buffer
  for (const ParamPart::Run& run : runs) {
    const int64_t from = std::max(extent.first, run.here * step),
                  to = std::min(extent.first + extent.size(), (run.here + run.size) * step);
    if (!run.counts || from >= to) continue;
    const int64_t begin = extent.begin + from - extent.first;
    if (!list.empty() && list.back().end == begin)
      list.back().end += to - from;
    else
      list.push_back({begin, begin + to - from, extent.spec, extent.param, from});
  }
  return list;
}

void for_whole_runs(const ParamSpec& spec, int64_t first, int64_t count,
                    const std::function<void(int64_t i, int64_t j, int64_t n)>& run) {
  if (!spec.part) return run(0, first, count);
  const auto dim = static_cast<size_t>(spec.part->dim);
  const int64_t step = step_of(spec), row = spec.shape[dim] * step, whole_row = spec.part->whole[dim] * step;
  for (int64_t at = first, end = first + count; at < end;) {
    const int64_t outer = at / row, inside = at % row;
    const ParamPart::Run* in = spec.part->runs.data();
    while ((in->here + in->size) * step <= inside) ++in;
    const int64_t offset = inside - in->here * step;
    const int64_t n = std::min(end - at, in->size * step - offset);
    run(at - first, outer * whole_row + in->there * step + offset, n);
    at += n;
  }
}

}  // namespace tycho
