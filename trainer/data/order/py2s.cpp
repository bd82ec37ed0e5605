// A shard's first shuffle is made anew for each of its pieces: kept are the generator's positions.
#include "trainer/data/order/py2s.h"

#include <algorithm>
#include <utility>

#include "trainer/data/order/canonical_nodes.h"
#include "trainer/data/order/numpy_rng.h"
#include "trainer/data/order/shuffle_series.h"

namespace tycho {
namespace {

/// A unit, and the generator before the unit's first shuffle.
struct Unit {
  IdSpan ids;
  NumpyRng rng;
};

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
  PieceStream(std::shared_ptr<const std::vector<Unit>> units, std::vector<Piece> pieces, const NumpyRng& rng)
      : units_(std::move(units)), pieces_(std::move(pieces)), shuffles_(sizes_of(pieces_), rng) {}
  /// The generator after all shuffles.
  NumpyRng rng_after() { return shuffles_.after(); }

 protected:
  size_t next_size() const override { return pieces_[at_].end - pieces_[at_].begin; }
  void make(std::vector<uint32_t>& chunk) override {
    const Piece piece = pieces_[at_++];
    const Unit& unit = (*units_)[piece.unit];
    chunk.resize(unit.ids.size());
    count_up(chunk, unit.ids.begin);
    NumpyRng(unit.rng).shuffle(std::span(chunk));
    std::copy(chunk.begin() + static_cast<int64_t>(piece.begin),
              chunk.begin() + static_cast<int64_t>(piece.end), chunk.begin());
    chunk.resize(piece.end - piece.begin);
    shuffles_.shuffle(std::span(chunk));
  }
  void pass() override {
    ++at_;
    shuffles_.pass();
  }

 private:
  std::shared_ptr<const std::vector<Unit>> units_;
  std::vector<Piece> pieces_;
  ShuffleSeries shuffles_;
  size_t at_ = 0;
};

std::vector<Unit> shuffled_units(std::span<const uint32_t> unit_sizes, uint64_t seed) {
  NumpyRng rng(seed);
  std::vector<IdSpan> spans = unit_spans(unit_sizes);
  rng.shuffle(std::span(spans));
  std::vector<Unit> units;
  units.reserve(spans.size());
  for (const IdSpan& span : spans) {
    units.push_back({span, rng});
    rng.skip_shuffle(span.size());
  }
  return units;
}

/// Positions in the list of all shuffled units, cut like ids.
std::vector<std::vector<Piece>> cut_pieces(const std::vector<Unit>& units, int64_t num_nodes) {
  std::vector<uint32_t> sizes;
  for (const Unit& unit : units) sizes.push_back(static_cast<uint32_t>(unit.ids.size()));
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
  const auto units = std::make_shared<std::vector<Unit>>(shuffled_units(unit_sizes, shuffle.seed));
  NumpyRng rng(shuffle.seed + static_cast<uint64_t>(shuffle.epoch));
  std::vector<std::unique_ptr<IdStream>> streams;
  for (std::vector<Piece>& pieces : cut_pieces(*units, shuffle.num_canonical_nodes)) {
    rng.shuffle(std::span(pieces));
    auto stream = std::make_unique<PieceStream>(units, std::move(pieces), rng);
    if (streams.size() + 1 < static_cast<size_t>(shuffle.num_canonical_nodes)) rng = stream->rng_after();
    streams.push_back(std::move(stream));
  }
  return streams;
}

}  // namespace tycho
