// A shard's first shuffle is made anew for each of its pieces: kept are the generator's positions.
#include "trainer/data/order/py2s.h"

#include <algorithm>
#include <future>
#include <utility>

#include "trainer/data/order/canonical_nodes.h"
#include "trainer/data/order/numpy_rng.h"
#include "trainer/data/order/shuffle_series.h"

namespace tycho {
namespace {

/// The generator before the first shuffle of each unit.
using UnitRngs = std::shared_future<std::vector<NumpyRng>>;

/// Part of a unit's first shuffle.
struct Piece {
  size_t unit = 0, begin = 0, end = 0;
};

std::vector<uint32_t> sizes_of(const std::vector<Piece>& pieces) {
  std::vector<uint32_t> sizes;
  for (const Piece& piece : pieces) sizes.push_back(static_cast<uint32_t>(piece.end - piece.begin));
  return sizes;
}

class PieceStream final : public ChunkedStream {
 public:
  PieceStream(std::shared_ptr<const std::vector<IdSpan>> units, UnitRngs unit_rngs, std::vector<Piece> pieces,
              const NumpyRng& rng)
      : units_(std::move(units)),
        unit_rngs_(std::move(unit_rngs)),
        pieces_(std::move(pieces)),
        shuffles_(sizes_of(pieces_), rng) {}
  /// The generator after all shuffles.
  NumpyRng rng_after() { return shuffles_.after(); }

 protected:
  size_t next_size() const override { return pieces_[at_].end - pieces_[at_].begin; }
  size_t make(IdChunk& chunk) override {
    shuffles_.rng();  // draws what was passed over while the other thread draws the first shuffles
    const Piece piece = pieces_[at_++];
    const IdSpan unit = (*units_)[piece.unit];
    chunk.resize(unit.size());
    count_up(chunk, unit.begin);
    NumpyRng(unit_rngs_.get()[piece.unit]).shuffle(std::span<uint32_t>(chunk));
    std::copy(chunk.begin() + static_cast<int64_t>(piece.begin),
              chunk.begin() + static_cast<int64_t>(piece.end), chunk.begin());
    chunk.resize(piece.end - piece.begin);
    shuffles_.shuffle(std::span(chunk));
    return chunk.size();
  }
  void pass() override {
    ++at_;
    shuffles_.pass();
  }

 private:
  std::shared_ptr<const std::vector<IdSpan>> units_;
  UnitRngs unit_rngs_;
  std::vector<Piece> pieces_;
  ShuffleSeries shuffles_;
  size_t at_ = 0;
};

/// The first shuffles do not depend on those of the epoch, so that two cores can draw to skip both.
UnitRngs draw_first_shuffles(const std::vector<IdSpan>& units, const NumpyRng& rng) {
  auto draw = [sizes = sizes_of(units), rng = NumpyRng(rng)]() mutable {
    std::vector<NumpyRng> before;
    before.reserve(sizes.size());
    for (const uint32_t size : sizes) {
      before.push_back(rng);
      rng.skip_shuffle(size);
    }
    return before;
  };
  constexpr uint32_t kWorthAThread = 1 << 20;  // ids, which take a millisecond
  uint64_t num_ids = 0;
  for (const IdSpan& unit : units) num_ids += unit.size();
  const auto here = std::launch::deferred, anywhere = std::launch::async | here;
  return std::async(num_ids < kWorthAThread ? here : anywhere, std::move(draw)).share();
}

/// Positions in the list of all shuffled units, cut like ids.
std::vector<std::vector<Piece>> cut_pieces(const std::vector<IdSpan>& units, int64_t num_nodes) {
  const std::vector<uint32_t> sizes = sizes_of(units);
  const std::vector<IdSpan> places = unit_spans(sizes);
  std::vector<std::vector<Piece>> nodes;
  size_t unit = 0;
  for (const NodeSpans& node : divide_spans(places, num_nodes)) {
    nodes.emplace_back();
    for (const IdSpan& span : node) {
      while (places[unit].end <= span.begin) ++unit;
      nodes.back().push_back({unit, span.begin - places[unit].begin, span.end - places[unit].begin});
    }
  }
  return nodes;
}

}  // namespace

std::vector<std::unique_ptr<IdStream>> py2s_nodes(std::span<const uint32_t> unit_sizes,
                                                  const Shuffle& shuffle) {
  NumpyRng run_rng(shuffle.seed);
  const auto units = std::make_shared<std::vector<IdSpan>>(unit_spans(unit_sizes));
  run_rng.shuffle(std::span(*units));
  const UnitRngs unit_rngs = draw_first_shuffles(*units, run_rng);
  NumpyRng rng(shuffle.seed + static_cast<uint64_t>(shuffle.epoch));
  std::vector<std::unique_ptr<IdStream>> streams;
  for (std::vector<Piece>& pieces : cut_pieces(*units, shuffle.num_canonical_nodes)) {
    rng.shuffle(std::span(pieces));
    auto stream = std::make_unique<PieceStream>(units, unit_rngs, std::move(pieces), rng);
    if (streams.size() + 1 < static_cast<size_t>(shuffle.num_canonical_nodes)) rng = stream->rng_after();
    streams.push_back(std::move(stream));
  }
  return streams;
}

}  // namespace tycho
