// Samples are thrown into buckets of neighbouring positions. A bucket that no later shard can reach is sorted
// and handed out, so memory holds the reach of a block and not an epoch.
#include "trainer/data/order/py1e.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "trainer/data/order/canonical_nodes.h"
#include "trainer/data/order/numpy_rng.h"
#include "trainer/data/order/shuffle_series.h"
#include "trainer/data/order/spread_buckets.h"

namespace tycho {
namespace {

/// The size that a block is drawn to have: integers(low, high).
struct BlockSizes {
  int64_t low, high;
  explicit BlockSizes(int64_t block_size)
      : low(static_cast<int64_t>(0.75 * static_cast<double>(block_size))),
        high(static_cast<int64_t>(1.25 * static_cast<double>(block_size))) {}
};

class SpreadStream final : public ChunkedStream {
 public:
  /// `rng`: before the ids of this node's spans are shuffled.
  SpreadStream(NodeSpans spans, BlockSizes sizes, const NumpyRng& rng)
      : spans_(std::move(spans)),
        sizes_(sizes),
        reach_(sizes.high / 2 + 1),
        shuffles_(sizes_of(spans_), rng),
        shift_rng_(shuffles_.after()) {
    for (const IdSpan& span : spans_) {
      size_ += static_cast<int64_t>(span.size());
      longest_ = std::max(longest_, static_cast<int64_t>(span.size()));
    }
    constexpr int64_t kWidth = SpreadBuckets::kWidth;
    buckets_.emplace((2 * reach_ + longest_) / kWidth + 3, (size_ + kWidth - 1) / kWidth);
  }

  /// The generator after all draws of this node. Before the first id is read.
  NumpyRng rng_after() const {
    NumpyRng rng = shift_rng_;
    for (const IdSpan& span : spans_) {
      rng.integers(sizes_.low, sizes_.high);
      rng.skip64(span.size());
    }
    return rng;
  }

 protected:
  size_t next_size() const override { return 0; }
  void pass() override {}

  void make(std::vector<uint32_t>& chunk) override {
    chunk.clear();
    while (chunk.empty()) {
      complete_bucket();
      buckets_->take_first(chunk);
    }
  }

  /// Spans that end far before the target are drawn and not placed.
  int64_t leap(int64_t count) override {
    const int64_t bucket = (count - reach_ - longest_) >> SpreadBuckets::kBits;
    if (at_ > 0 || bucket <= 0) return 0;
    buckets_->start_at(bucket);
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
    return num_before_;
  }

 private:
  /// Places spans until none that follows reaches the first bucket.
  void complete_bucket() {
    while (at_ < spans_.size() && placed_ - reach_ < (buckets_->first() + 1) << SpreadBuckets::kBits)
      place_span();
  }

  void place_span() {
    const IdSpan span = spans_[at_++];
    const auto size = static_cast<int64_t>(span.size());
    ids_.resize(span.size());
    count_up(ids_, span.begin);
    shuffles_.shuffle(std::span(ids_));
    const int64_t block = shift_rng_.integers(sizes_.low, sizes_.high);
    const double cutoff = std::max(static_cast<double>(block - size) / 2, 0.0);
    const double low = std::max(-cutoff, -static_cast<double>(placed_));
    const double range = std::min(cutoff, static_cast<double>(size_ - placed_ - size)) - low;
    std::array<double, 512> shifts;
    for (size_t begin = 0; begin < ids_.size(); begin += shifts.size()) {
      const auto drawn = std::span(shifts).first(std::min(shifts.size(), ids_.size() - begin));
      shift_rng_.next_doubles(drawn);
      for (size_t i = 0; i < drawn.size(); ++i) {
        const auto place = static_cast<double>(placed_ + static_cast<int64_t>(begin + i));
        if (!buckets_->put(place + (low + range * drawn[i]), ids_[begin + i])) ++num_before_;
      }
    }
    placed_ += size;
  }

  NodeSpans spans_;
  BlockSizes sizes_;
  int64_t reach_;  // positions by which a sample moves at most
  int64_t size_ = 0, longest_ = 0;
  ShuffleSeries shuffles_;
  NumpyRng shift_rng_;
  size_t at_ = 0;
  int64_t placed_ = 0;      // samples of the spans before `at_`
  int64_t num_before_ = 0;  // of them, those that leap() went past
  std::optional<SpreadBuckets> buckets_;
  std::vector<uint32_t> ids_;
};

}  // namespace

std::vector<std::unique_ptr<IdStream>> py1e_nodes(std::span<const uint32_t> unit_sizes,
                                                  const Shuffle& shuffle) {
  NumpyRng rng(shuffle.seed + static_cast<uint64_t>(shuffle.epoch));
  const BlockSizes sizes(shuffle.block_size);
  auto nodes = shuffled_node_spans(unit_sizes, shuffle.num_canonical_nodes, shuffle.seed, rng);
  std::vector<std::unique_ptr<IdStream>> streams;
  for (size_t i = 0; i < nodes.size(); ++i) {
    auto stream = std::make_unique<SpreadStream>(std::move(nodes[i]), sizes, rng);
    if (i + 1 < nodes.size()) rng = stream->rng_after();
    streams.push_back(std::move(stream));
  }
  return streams;
}

}  // namespace tycho
