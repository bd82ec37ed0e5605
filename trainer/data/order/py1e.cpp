// Puts samples into buckets of neighbouring positions. A bucket is sorted and returned once no later shard
// can reach it, so that memory holds the reach of a block instead of an epoch.
#include "trainer/data/order/py1e.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <span>
#include <utility>

#include "trainer/data/order/canonical_nodes.h"
#include "trainer/data/order/numpy_rng.h"
#include "trainer/data/order/shuffle_series.h"
#include "trainer/data/order/spread_buckets.h"

namespace tycho {
namespace {

/// Range of the size of a block: integers(low, high).
struct BlockSizes {
  int64_t low, high;
  explicit BlockSizes(int64_t block_size)
      : low(static_cast<int64_t>(0.75 * static_cast<double>(block_size))),
        high(static_cast<int64_t>(1.25 * static_cast<double>(block_size))) {}
};

/// Range of the shifts of samples: low + range u, u uniform in [0, 1).
struct Shifts {
  double low = 0, range = 0;
  double of(double u) const { return low + range * u; }
};

class SpreadStream final : public ChunkedStream {
 public:
  /// `rng`: generator before the ids of this node's spans are shuffled.
  SpreadStream(NodeSpans spans, BlockSizes sizes, const NumpyRng& rng, MarkBook& book)
      : spans_(std::move(spans)),
        sizes_(sizes),
        reach_(sizes.high / 2 + 1),
        shuffles_(sizes_of(spans_), rng, book),
        first_shift_rng_(shuffles_.after()),
        shift_rng_(first_shift_rng_) {
    for (const IdSpan& span : spans_) {
      size_ += static_cast<int64_t>(span.size());
      longest_ = std::max(longest_, static_cast<int64_t>(span.size()));
    }
    constexpr int64_t kWidth = SpreadBuckets::kWidth;
    buckets_.emplace((2 * reach_ + longest_) / kWidth + 3, (size_ + kWidth - 1) / kWidth,
                     [this](uint32_t id) { return exact_place_of(id); });
  }

  /// Returns the generator after all draws of this node. Call it before the first id is read.
  NumpyRng rng_after() const {
    NumpyRng rng = shift_rng_;
    all_shifts(rng);
    return rng;
  }

 protected:
  size_t next_size() const override { return 0; }
  void pass() override {}

  size_t make(IdChunk& chunk) override {
    while (chunk.empty()) {
      complete_bucket();
      buckets_->take_first(chunk);
    }
    return chunk.size();
  }

  /// Starts a little before `count`. The number of samples before a bucket is known only when all samples
  /// that may reach it are placed; if there are too many, it starts again, farther away.
  int64_t leap(int64_t count) override {
    if (at_ > 0) return 0;
    const int64_t likely = likely_position(count);
    for (int64_t margin = longest_ / 4;; margin = 4 * margin + 1) {
      const int64_t bucket = (likely - margin) >> SpreadBuckets::kBits;
      if (bucket > 0) start_at(bucket);
      if (num_before_ <= count) return num_before_;
      buckets_->restart_at(0);
      shuffles_.restart();
      shift_rng_ = first_shift_rng_;
      open_.clear();
      at_ = 0;
      placed_ = num_before_ = 0;
    }
  }

 private:
  /// A span of which samples may be in open buckets, and the values that its positions are computed from.
  struct OpenSpan {
    IdSpan ids;
    int64_t placed;  // samples before it
    NumpyRng shuffle_rng, shift_rng;
    Shifts shifts;
  };

  Shifts draw_shifts(NumpyRng& rng, int64_t placed, int64_t size) const {
    const int64_t block = rng.integers(sizes_.low, sizes_.high);
    const double cutoff = std::max(static_cast<double>(block - size) / 2, 0.0);
    const double low = std::max(-cutoff, -static_cast<double>(placed));
    return {low, std::min(cutoff, static_cast<double>(size_ - placed - size)) - low};
  }

  std::vector<Shifts> all_shifts(NumpyRng& rng) const {
    std::vector<Shifts> shifts;
    int64_t placed = 0;
    for (const IdSpan& span : spans_) {
      const auto size = static_cast<int64_t>(span.size());
      shifts.push_back(draw_shifts(rng, placed, size));
      rng.skip64(span.size());
      placed += size;
    }
    return shifts;
  }

  /// Estimates the position before which `count` samples lie.
  int64_t likely_position(int64_t count) const {
    NumpyRng rng = first_shift_rng_;
    const std::vector<Shifts> shifts = all_shifts(rng);
    double position = static_cast<double>(count);
    for (int round = 0; round < 6; ++round) {  // there is about one sample for each position
      double before = 0, middle = 0;
      for (size_t i = 0; i < spans_.size(); ++i) {
        const auto size = static_cast<double>(spans_[i].size());
        const double way = position - (middle + size / 2 + shifts[i].low);
        before += size * std::clamp(way / std::max(shifts[i].range, 1.0), 0.0, 1.0);
        middle += size;
      }
      position = std::clamp(position + static_cast<double>(count) - before, 0.0, static_cast<double>(size_));
    }
    return static_cast<int64_t>(position);
  }

  /// Starts at a bucket. Spans that end far before it are drawn and not placed.
  void start_at(int64_t bucket) {
    buckets_->restart_at(bucket);
    while (at_ < spans_.size() &&
           placed_ + static_cast<int64_t>(spans_[at_].size()) + reach_ <= bucket << SpreadBuckets::kBits) {
      const size_t size = spans_[at_++].size();
      shuffles_.pass();
      shift_rng_.integers(sizes_.low, sizes_.high);
      shift_rng_.skip64(size);
      placed_ += static_cast<int64_t>(size);
    }
    num_before_ = placed_;
    complete_bucket();
  }

  /// Places spans until no later span reaches the first bucket.
  void complete_bucket() {
    const int64_t begin = buckets_->first() << SpreadBuckets::kBits;
    while (!open_.empty() &&
           open_.front().placed + static_cast<int64_t>(open_.front().ids.size()) + reach_ < begin)
      open_.pop_front();
    while (at_ < spans_.size() && placed_ - reach_ < begin + SpreadBuckets::kWidth) place_span();
  }

  void place_span() {
    const IdSpan span = spans_[at_++];
    const auto size = static_cast<int64_t>(span.size());
    ids_.resize(span.size());
    count_up(ids_, span.begin);
    const NumpyRng shuffle_rng = shuffles_.rng();
    shuffles_.shuffle(std::span(ids_));
    const Shifts shifts = draw_shifts(shift_rng_, placed_, size);
    open_.push_back({span, placed_, shuffle_rng, shift_rng_, shifts});
    std::array<double, 512> positions{};
    for (size_t begin = 0; begin < ids_.size(); begin += positions.size()) {
      const auto here = std::span(positions).first(std::min(positions.size(), ids_.size() - begin));
      shift_rng_.next_doubles(here);
      const auto place = static_cast<double>(placed_ + static_cast<int64_t>(begin));
      for (size_t i = 0; i < positions.size(); ++i)  // all of them: a loop of known length becomes vectors
        positions[i] = place + static_cast<double>(static_cast<int32_t>(i)) + shifts.of(positions[i]);
      num_before_ += buckets_->put(here, std::span(ids_).subspan(begin, here.size()));
    }
    placed_ += size;
  }

  SortKey exact_place_of(uint32_t id) const {
    const auto open = std::find_if(open_.begin(), open_.end(), [id](const OpenSpan& one) {
      return one.ids.begin <= id && id < one.ids.end;
    });
    std::vector<uint32_t> ids(open->ids.size());
    count_up(ids, open->ids.begin);
    NumpyRng(open->shuffle_rng).shuffle(std::span(ids));
    const auto at = static_cast<int64_t>(std::find(ids.begin(), ids.end(), id) - ids.begin());
    NumpyRng shift_rng = open->shift_rng;
    shift_rng.skip64(static_cast<uint64_t>(at));
    const int64_t place = open->placed + at;
    return {static_cast<double>(place) + open->shifts.of(shift_rng.next_double()), place};
  }

  NodeSpans spans_;
  BlockSizes sizes_;
  int64_t reach_;  // positions by which a sample moves at most
  int64_t size_ = 0, longest_ = 0;
  ShuffleSeries shuffles_;
  NumpyRng first_shift_rng_, shift_rng_;
  size_t at_ = 0;
  int64_t placed_ = 0;      // samples of the spans before `at_`
  int64_t num_before_ = 0;  // samples that leap() skipped, a part of placed_
  std::deque<OpenSpan> open_;
  std::optional<SpreadBuckets> buckets_;
  std::vector<uint32_t> ids_;
};

}  // namespace

std::vector<std::unique_ptr<IdStream>> py1e_nodes(std::span<const uint32_t> unit_sizes,
                                                  const Shuffle& shuffle, MarkBook& book) {
  NumpyRng rng(shuffle.seed + static_cast<uint64_t>(shuffle.epoch));
  const BlockSizes sizes(shuffle.block_size);
  auto nodes = shuffled_node_spans(unit_sizes, shuffle.num_canonical_nodes, shuffle.seed, rng);
  std::vector<std::unique_ptr<IdStream>> streams;
  for (size_t i = 0; i < nodes.size(); ++i) {
    auto stream = std::make_unique<SpreadStream>(std::move(nodes[i]), sizes, rng, book);
    if (i + 1 < nodes.size()) rng = stream->rng_after();
    streams.push_back(std::move(stream));
  }
  return streams;
}

}  // namespace tycho
