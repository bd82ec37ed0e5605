// A window is a chunk: a resume skips earlier windows without sorting them.
#include "trainer/data/order/length_buckets.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "trainer/base/random/philox.h"
#include "trainer/data/order/numpy_rng.h"

namespace tycho {
namespace {

class BucketStream final : public ChunkedStream {
 public:
  BucketStream(std::unique_ptr<IdStream> rows, std::span<const int32_t> lengths, const LengthBuckets& buckets)
      : rows_(std::move(rows)), lengths_(lengths), buckets_(buckets), left_(buckets.num_rows) {}

 private:
  int64_t window_batches() const { return std::min(buckets_.window_batches, left_ / buckets_.batch_rows); }
  size_t next_size() const override {
    const int64_t batches = window_batches();
    return static_cast<size_t>(batches > 0 ? batches * buckets_.batch_rows : left_);
  }

  size_t make(IdChunk& chunk) override {
    const size_t size = next_size();
    const int64_t batches = window_batches();
    window_.resize(size);
    rows_->read(window_);
    std::stable_sort(window_.begin(), window_.end(),
                     [&](uint32_t a, uint32_t b) { return batches > 0 && lengths_[a] < lengths_[b]; });
    std::vector<int64_t> order(static_cast<size_t>(std::max<int64_t>(batches, 1)));
    std::iota(order.begin(), order.end(), 0);
    NumpyRng(stream_key(buckets_.seed, fmt::format("length buckets {} {}", buckets_.epoch, number_)))
        .shuffle(std::span(order));
    const auto rows = static_cast<int64_t>(size) / std::ssize(order);
    for (const int64_t batch : order)
      chunk.insert(chunk.end(), window_.begin() + batch * rows, window_.begin() + (batch + 1) * rows);
    finish_window(size);
    return chunk.size();
  }

  void pass() override {
    const size_t size = next_size();
    rows_->skip(static_cast<int64_t>(size));
    finish_window(size);
  }

  void finish_window(size_t size) {
    left_ -= static_cast<int64_t>(size);
    ++number_;
  }

  std::unique_ptr<IdStream> rows_;
  std::span<const int32_t> lengths_;
  LengthBuckets buckets_;
  int64_t left_;  // rows that have not been read
  int64_t number_ = 0;
  std::vector<uint32_t> window_;
};

}  // namespace

std::unique_ptr<IdStream> in_length_buckets(std::unique_ptr<IdStream> rows, std::span<const int32_t> lengths,
                                            const LengthBuckets& buckets) {
  return std::make_unique<BucketStream>(std::move(rows), lengths, buckets);
}

}  // namespace tycho
