// A shard's first shuffle is repeated for each of its pieces, from stored positions of the generator. If
// marks are known, positions are drawn from one mark to the next when the first shard between them is needed.
#include "trainer/data/order/py2s.h"

#include <algorithm>
#include <future>
#include <numeric>
#include <utility>

#include "trainer/data/order/canonical_nodes.h"
#include "trainer/data/order/numpy_rng.h"
#include "trainer/data/order/shuffle_series.h"

namespace tycho {
namespace {

/// Generators before the first shuffle of each unit, computed for spans of units.
class UnitRngs {
 public:
  UnitRngs(const std::vector<IdSpan>& units, const NumpyRng& rng, MarkBook& book);
  NumpyRng before(size_t unit) const {
    const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), unit);
    return rngs_[static_cast<size_t>(after - firsts_.begin()) - 1].get()[unit - *(after - 1)];
  }

 private:
  std::vector<size_t> firsts_;  // first unit of each span
  std::vector<std::shared_future<std::vector<NumpyRng>>> rngs_;
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
  PieceStream(std::shared_ptr<const std::vector<IdSpan>> units, std::shared_ptr<const UnitRngs> unit_rngs,
              std::vector<Piece> pieces, const NumpyRng& rng, MarkBook& book)
      : units_(std::move(units)),
        unit_rngs_(std::move(unit_rngs)),
        pieces_(std::move(pieces)),
        shuffles_(sizes_of(pieces_), rng, book) {}
  /// Returns the generator after all shuffles.
  NumpyRng rng_after() { return shuffles_.after(); }

 protected:
  size_t next_size() const override { return pieces_[at_].end - pieces_[at_].begin; }
  size_t make(IdChunk& chunk) override {
    shuffles_.rng();  // draws what was skipped while the other thread draws the first shuffles
    const Piece piece = pieces_[at_++];
    const IdSpan unit = (*units_)[piece.unit];
    chunk.resize(unit.size());
    count_up(chunk, unit.begin);
    unit_rngs_->before(piece.unit).shuffle(std::span<uint32_t>(chunk));
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
  std::shared_ptr<const UnitRngs> unit_rngs_;
  std::vector<Piece> pieces_;
  ShuffleSeries shuffles_;
  size_t at_ = 0;
};

// Without marks there is one span. The first shuffles do not depend on those of the epoch, so that two cores
// can draw both in parallel.
UnitRngs::UnitRngs(const std::vector<IdSpan>& units, const NumpyRng& rng, MarkBook& book) {
  constexpr uint32_t kWorthAThread = 1 << 20;  // ids, which take a millisecond
  const ShuffleSeries series(sizes_of(units), rng, book);
  if (book.use() == MarkBook::Use::kRead) series.check_last_mark();
  const auto marks = series.marks();
  for (size_t i = 0; i < marks.size() && marks[i].shuffle < units.size(); ++i) {
    const size_t first = marks[i].shuffle, end = i + 1 < marks.size() ? marks[i + 1].shuffle : units.size();
    const auto sizes = series.sizes().subspan(first, end - first);
    auto draw = [sizes = std::vector(sizes.begin(), sizes.end()), rng = marks[i].rng]() mutable {
      std::vector<NumpyRng> before;
      before.reserve(sizes.size());
      for (const uint32_t size : sizes) {
        before.push_back(rng);
        rng.skip_shuffle(size);
      }
      return before;
    };
    const bool is_long = std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}) >= kWorthAThread;
    const auto here = std::launch::deferred, anywhere = std::launch::async | here;
    firsts_.push_back(first);
    rngs_.push_back(std::async(is_long && marks.size() == 1 ? anywhere : here, std::move(draw)).share());
  }
}

/// Cuts the list of all shuffled units into nodes, as ids are cut.
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
                                                  const Shuffle& shuffle, MarkBook& book) {
  NumpyRng run_rng(shuffle.seed);
  const auto units = std::make_shared<std::vector<IdSpan>>(unit_spans(unit_sizes));
  run_rng.shuffle(std::span(*units));
  const auto unit_rngs = std::make_shared<UnitRngs>(*units, run_rng, book);
  NumpyRng rng(shuffle.seed + static_cast<uint64_t>(shuffle.epoch));
  std::vector<std::unique_ptr<IdStream>> streams;
  for (std::vector<Piece>& pieces : cut_pieces(*units, shuffle.num_canonical_nodes)) {
    rng.shuffle(std::span(pieces));
    auto stream = std::make_unique<PieceStream>(units, unit_rngs, std::move(pieces), rng, book);
    if (streams.size() + 1 < static_cast<size_t>(shuffle.num_canonical_nodes)) rng = stream->rng_after();
    streams.push_back(std::move(stream));
  }
  return streams;
}

}  // namespace tycho
