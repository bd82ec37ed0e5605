// Ranks keep the ranges of a unit that they own, so the rest is divided as its elements happen to lie.
#include "trainer/layout/coded_unit.h"

#include <algorithm>

#include "trainer/layout/unit_layout.h"
#include "trainer/layout/unit_shards.h"

namespace tycho {
namespace {

constexpr int64_t kBytes = 64;          // parts of the buffer begin at multiples of it
constexpr int64_t kCodeAlignment = 16;  // of operands of a GPU's products

int64_t up_to(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// Returns the most elements of the rest that a rank owns.
int64_t most_of_a_rank(const std::vector<CodedUnitLayout::Run>& rest, int64_t numel, int64_t num_ranks) {
  int64_t most = 0;
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    const ShardRange range = shard_range(numel, num_ranks, rank);
    int64_t own = 0;
    for (const CodedUnitLayout::Run& run : rest)
      own += std::max(int64_t{0}, std::min(range.end, run.end) - std::max(range.begin, run.begin));
    most = std::max(most, own);
  }
  return most;
}

}  // namespace

std::optional<CodedUnitLayout> coded_unit_layout(const UnitSpec& unit, int64_t num_ranks) {
  const auto is_coded = [](const ParamSpec& param) { return param.coded; };
  if (num_ranks < 2 || std::none_of(unit.params.begin(), unit.params.end(), is_coded)) return std::nullopt;
  CodedUnitLayout layout = {.num_ranks = num_ranks, .codes_each = shard_elements(unit.numel(), num_ranks)};
  int64_t begin = 0, place = 0;
  for (size_t i = 0; i < unit.params.size(); ++i) {
    const ParamSpec& param = unit.params[i];
    const int64_t end = begin + param.room();
    if (param.coded) {
      if (begin % kCodeAlignment != 0) return std::nullopt;
      layout.matrices.push_back({i, layout.num_factors(), param.shape.front()});
    } else if (!layout.rest.empty() && layout.rest.back().end == begin) {
      layout.rest.back().end = end;
      place += end - begin;
    } else {
      // A tensor is aligned as in a buffer of bf16.
      while ((place - begin) % (kBytes / 2) != 0) ++place;
      layout.rest.push_back({begin, end, place});
      place += end - begin;
    }
    begin = end;
  }
  layout.rest_each = up_to(most_of_a_rank(layout.rest, unit.numel(), num_ranks), kBytes / 2);
  layout.rest_at = up_to(num_ranks * layout.codes_each, kBytes);
  layout.placed_at = layout.rest_at + num_ranks * layout.rest_each * 2;
  const int64_t as_bf16 = num_ranks * layout.codes_each * 2;
  return layout.placed_at + place * 2 <= as_bf16 ? std::optional(layout) : std::nullopt;
}

}  // namespace tycho
