// One sum for each unit and group: the pieces are small, so a sum takes as long as a round trip.
#include "trainer/sharding/partial_gradients.h"

#include <algorithm>

#include "trainer/kernels/tensor.h"

namespace tycho {
namespace {

bool shares_heads(const std::vector<UnitSpec>& specs) {
  for (const UnitSpec& unit : specs)
    for (const ParamSpec& param : unit.params)
      for (const ParamPart::Run& run : param.part->runs)
        if (run.sum == ParamPart::Sum::kCopies) return true;
  return false;
}

/// Returns the number of this rank's key head, equal on all ranks that have that head.
int copies_colour(const std::vector<UnitSpec>& specs) {
  for (const UnitSpec& unit : specs)
    for (const ParamSpec& param : unit.params) {
      int64_t there = 0;
      for (const ParamPart::Run& run : param.part->runs) {
        if (run.sum == ParamPart::Sum::kCopies) return static_cast<int>((run.there - there) / run.size);
        if (param.tp.sections.empty()) continue;
        const auto section = static_cast<size_t>(&run - param.part->runs.data());
        there += param.tp.sections[section].count * param.tp.sections[section].width;
      }
    }
  return 0;
}

}  // namespace

PartialGradients::PartialGradients(const std::vector<UnitSpec>& specs, Communicator& tp) : tp_(&tp) {
  if (tp.size() == 1) return;
  for (const UnitSpec& unit : specs) units_.push_back(sums_of(unit));
  if (shares_heads(specs)) copies_ = tp.split(copies_colour(specs), tp.rank());
}

PartialGradients::Sums PartialGradients::sums_of(const UnitSpec& unit) {
  Sums sums;
  for (size_t i = 0; i < unit.params.size(); ++i) {
    const ParamSpec& param = unit.params[i];
    if (param.frozen || !param.part) continue;
    for (const ParamPart::Run& run : param.part->runs) {
      const Span span = {i, param.part->dim, run.here, run.size};
      if (run.sum == ParamPart::Sum::kCopies) sums.copies.push_back(span);
      if (run.sum == ParamPart::Sum::kAll) sums.all.push_back(span);
    }
  }
  return sums;
}

void PartialGradients::sum(int unit, Views& grads) {
  if (units_.empty()) return;
  const Sums& sums = units_[static_cast<size_t>(unit)];
  if (copies_) sum_together(sums.copies, grads, *copies_);
  sum_together(sums.all, grads, *tp_);
}

void PartialGradients::sum_together(const std::vector<Span>& spans, Views& grads, Communicator& ranks) {
  if (spans.empty()) return;
  const auto part = [&](const Span& span) {
    return grads[span.param].narrow(span.dim, span.begin, span.size);
  };
  std::vector<Tensor> flats;
  for (const Span& span : spans) flats.push_back(part(span).reshape({-1}));
  Tensor together = joined(flats);
  ranks.all_reduce(together);
  int64_t begin = 0;
  for (const Span& span : spans) {
    Tensor one = part(span);
    one.copy_(together.narrow(0, begin, one.numel()).view(one.sizes()));
    begin += one.numel();
  }
}

}  // namespace tycho
