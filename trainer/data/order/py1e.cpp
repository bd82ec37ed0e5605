// Samples are thrown into buckets of neighbouring positions. A bucket that no later shard can reach is sorted
// and handed out, so memory holds the reach of a block and not an epoch.
#include "trainer/data/order/py1e.h"

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>
#include <utility>

#include "trainer/data/order/canonical_nodes.h"
#include "trainer/data/order/numpy_rng.h"

namespace tycho {
namespace {

constexpr int kBucketBits = 12;
constexpr int64_t kBucket = int64_t{1} << kBucketBits;  // positions

struct Placed {
  double position;
  uint32_t id;
};

/// The size that a block is drawn to have: integers(low, high).
struct BlockSizes {
  int64_t low, high;
  explicit BlockSizes(int64_t block_size)
      : low(static_cast<int64_t>(0.75 * static_cast<double>(block_size))),
        high(static_cast<int64_t>(1.25 * static_cast<double>(block_size))) {}
};

/// Sorts by position: first by its whole part, of which there is about one each, then by insertion. Samples
/// of one position, which NumPy's sort may order either way, stay in the order of their spans.
void sort_bucket(const std::vector<Placed>& bucket, int64_t begin, std::vector<Placed>& sorted) {
  std::array<uint32_t, kBucket + 1> ends{};
  const auto cell = [begin](const Placed& placed) {
    return static_cast<size_t>(std::min(static_cast<int64_t>(placed.position) - begin, kBucket - 1));
  };
  for (const Placed& placed : bucket) ++ends[cell(placed) + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  sorted.resize(bucket.size());
  for (const Placed& placed : bucket) sorted[ends[cell(placed)]++] = placed;
  for (size_t i = 1; i < sorted.size(); ++i) {
    const Placed placed = sorted[i];
    size_t at = i;
    for (; at > 0 && sorted[at - 1].position > placed.position; --at) sorted[at] = sorted[at - 1];
    sorted[at] = placed;
  }
}

class SpreadStream final : public ChunkedStream {
 public:
  /// `rng`: before the ids of this node's spans are shuffled.
  SpreadStream(NodeSpans spans, BlockSizes sizes, const NumpyRng& rng)
      : spans_(std::move(spans)), sizes_(sizes), reach_(sizes.high / 2 + 1), ids_rng_(rng), shift_rng_(rng) {
    for (const IdSpan& span : spans_) {
      shift_rng_.skip_shuffle(span.size());
      size_ += static_cast<int64_t>(span.size());
      longest_ = std::max(longest_, static_cast<int64_t>(span.size()));
    }
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
      if (!buckets_.empty()) {
        sort_bucket(buckets_.front(), first_bucket_ << kBucketBits, sorted_);
        for (const Placed& placed : sorted_) chunk.push_back(placed.id);
        drop_bucket();
      }
      ++first_bucket_;
    }
  }

  /// Spans that end far before the target are drawn and not placed.
  int64_t leap(int64_t count) override {
    const int64_t bucket = (count - reach_ - longest_) >> kBucketBits;
    if (at_ > 0 || first_bucket_ > 0 || bucket <= 0) return 0;
    first_bucket_ = bucket;
    while (at_ < spans_.size() &&
           placed_ + static_cast<int64_t>(spans_[at_].size()) + reach_ <= bucket << kBucketBits) {
      const size_t size = spans_[at_++].size();
      ids_rng_.skip_shuffle(size);
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
    while (at_ < spans_.size() && placed_ - reach_ < (first_bucket_ + 1) << kBucketBits) place_span();
  }

  void place_span() {
    const IdSpan span = spans_[at_++];
    const auto size = static_cast<int64_t>(span.size());
    ids_.resize(span.size());
    std::iota(ids_.begin(), ids_.end(), span.begin);
    ids_rng_.shuffle(std::span(ids_));
    const int64_t block = shift_rng_.integers(sizes_.low, sizes_.high);
    const double cutoff = std::max(static_cast<double>(block - size) / 2, 0.0);
    const double low = std::max(-cutoff, -static_cast<double>(placed_));
    const double range = std::min(cutoff, static_cast<double>(size_ - placed_ - size)) - low;
    const int64_t last = (size_ - 1) >> kBucketBits;
    open_until(std::min((placed_ + size + reach_) >> kBucketBits, last));
    NumpyRng rng = shift_rng_;  // in registers
    for (int64_t i = 0; i < size; ++i) {
      const double position = static_cast<double>(placed_ + i) + (low + range * rng.next_double());
      const int64_t bucket = std::min(static_cast<int64_t>(position) >> kBucketBits, last) - first_bucket_;
      if (bucket < 0) {
        ++num_before_;
      } else {
        buckets_[static_cast<size_t>(bucket)].push_back({position, ids_[static_cast<size_t>(i)]});
      }
    }
    shift_rng_ = rng;
    placed_ += size;
  }

  void open_until(int64_t bucket) {
    while (first_bucket_ + static_cast<int64_t>(buckets_.size()) <= bucket) {
      if (free_.empty()) {
        buckets_.emplace_back();
        buckets_.back().reserve(kBucket + kBucket / 16);
      } else {
        buckets_.push_back(std::move(free_.back()));
        free_.pop_back();
      }
    }
  }

  void drop_bucket() {
    free_.push_back(std::move(buckets_.front()));
    free_.back().clear();
    buckets_.pop_front();
  }

  NodeSpans spans_;
  BlockSizes sizes_;
  int64_t reach_;  // positions by which a sample moves at most
  int64_t size_ = 0, longest_ = 0;
  NumpyRng ids_rng_, shift_rng_;
  size_t at_ = 0;
  int64_t placed_ = 0;      // samples of the spans before `at_`
  int64_t num_before_ = 0;  // of them, those whose buckets were dropped by leap()
  int64_t first_bucket_ = 0;
  std::deque<std::vector<Placed>> buckets_;
  std::vector<std::vector<Placed>> free_;
  std::vector<Placed> sorted_;
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
