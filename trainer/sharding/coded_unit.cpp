// The codes of all elements are gathered, so that those of a matrix lie together; elements that stay bf16 are
// few, and are copied to their places.
#include "trainer/sharding/coded_unit.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/zeros.h>

#include "trainer/kernels/fp8.h"
#include "trainer/layout/unit_shards.h"

namespace tycho {
namespace {

Tensor bf16_at(const Tensor& bytes, int64_t begin, int64_t count) {
  return bytes.narrow(0, begin, 2 * count).view(at::kBFloat16);
}

int64_t num_placed(const CodedUnitLayout& places) {
  if (places.rest.empty()) return 0;
  const CodedUnitLayout::Run& last = places.rest.back();
  return last.place + last.end - last.begin;
}

}  // namespace

CodedUnit::CodedUnit(const UnitLayout& layout, CodedUnitLayout places, int64_t rank, const Tensor& params,
                     const Tensor& buffer)
    : places_(std::move(places)), rank_(rank), layout_(layout), params_(params) {
  const ShardRange own = shard_range(layout.numel(), places_.num_ranks, rank);
  extents_ = layout_.extents_in(own.begin, own.end);
  sent_ = flat_buffer(places_.bytes_each(), at::kByte, params.device());
  factors_ = flat_buffer(places_.num_factors(), at::kFloat, params.device());
  const Tensor bytes = buffer.view(at::kByte);
  codes_ = bytes.narrow(0, 0, places_.num_ranks * places_.codes_each);
  rest_ = bf16_at(bytes, places_.rest_at, places_.num_ranks * places_.rest_each);
  placed_ = bf16_at(bytes, places_.placed_at, num_placed(places_));
  make_pieces(layout.numel());
  make_views(layout);
}

void CodedUnit::make_pieces(int64_t numel) {
  for (int64_t rank = 0; rank < places_.num_ranks; ++rank) {
    const ShardRange own = shard_range(numel, places_.num_ranks, rank);
    int64_t sent = rank * places_.rest_each;
    for (const CodedUnitLayout::Run& run : places_.rest) {
      const int64_t begin = std::max(own.begin, run.begin), end = std::min(own.end, run.end);
      if (begin >= end) continue;
      pieces_.push_back({rank, sent, run.place + begin - run.begin, end - begin, begin - own.begin});
      sent += end - begin;
    }
  }
}

void CodedUnit::make_views(const UnitLayout& layout) {
  const std::vector<FlatView>& flat = layout.views();
  const UnitSpec& spec = layout.spec();
  Views factors(flat.size());
  for (size_t v = 0; v < flat.size(); ++v) {
    const int64_t begin = flat[v].begin, size = numel(flat[v].shape);
    const size_t first =
        v < spec.params.size() ? v : static_cast<size_t>(spec.stacks[v - spec.params.size()].first);
    const auto matrix = std::find_if(places_.matrices.begin(), places_.matrices.end(),
                                     [&](const auto& one) { return one.param == first; });
    if (matrix != places_.matrices.end()) {
      views_.push_back(codes_.narrow(0, begin, size).view(at::kFloat8_e4m3fn).view(flat[v].shape));
      factors[v] = factors_.narrow(0, matrix->first_row, flat[v].shape.front());
      continue;
    }
    const auto run = std::find_if(places_.rest.begin(), places_.rest.end(),
                                  [&](const auto& one) { return one.begin <= begin && begin < one.end; });
    views_.push_back(placed_.narrow(0, run->place + begin - run->begin, size).view(flat[v].shape));
  }
  views_.insert(views_.end(), factors.begin(), factors.end());
}

Tensor CodedUnit::own_rest() const { return bf16_at(sent_, places_.codes_each, places_.rest_each); }

Tensor CodedUnit::maxima() const {
  Tensor amax_P = at::zeros({num_matrices()}, factors_.options());
  for (const Extent& extent : extents_)
    for (size_t p = 0; p < places_.matrices.size(); ++p)
      if (places_.matrices[p].param == extent.param)
        amax_P.narrow(0, static_cast<int64_t>(p), 1)
            .copy_(fp8_amax(params_.narrow(0, extent.begin, extent.size())));
  return amax_P;
}

void CodedUnit::encode(const Tensor& amax_P) {
  const Tensor of_matrices = fp8_factors(amax_P);
  for (size_t p = 0; p < places_.matrices.size(); ++p) {
    const CodedUnitLayout::Matrix& matrix = places_.matrices[p];
    const auto i = static_cast<int64_t>(p);
    factors_.narrow(0, matrix.first_row, matrix.rows)
        .copy_(of_matrices.narrow(0, i, 1).expand({matrix.rows}));
    for (const Extent& extent : extents_) {
      if (extent.param != matrix.param) continue;
      Tensor codes = sent_.narrow(0, extent.begin, extent.size()).view(at::kFloat8_e4m3fn);
      fp8_codes(params_.narrow(0, extent.begin, extent.size()), amax_P.narrow(0, i, 1), codes);
    }
  }
  for (const Piece& piece : pieces_)
    if (piece.rank == rank_)
      own_rest()
          .narrow(0, piece.from - rank_ * places_.rest_each, piece.size)
          .copy_(params_.narrow(0, piece.owned, piece.size));
}

std::vector<GroupedCall> CodedUnit::gathers() const {
  std::vector<GroupedCall> calls = {GroupedCall::all_gather(codes_, sent_.narrow(0, 0, places_.codes_each))};
  if (places_.rest_each > 0) calls.push_back(GroupedCall::all_gather(rest_, own_rest()));
  return calls;
}

void CodedUnit::place() {
  for (const Piece& piece : pieces_)
    placed_.narrow(0, piece.to, piece.size).copy_(rest_.narrow(0, piece.from, piece.size));
}

}  // namespace tycho
