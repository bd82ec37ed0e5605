// Reads a batch stream by stream, and copies each row to its place in the batch.
#include "trainer/data/loader/streams_reader.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"

namespace tycho {
namespace {

class StreamsReader final : public RowReader {
 public:
  StreamsReader(std::vector<std::unique_ptr<RowReader>> streams, int64_t vocab_size)
      : streams_(std::move(streams)), vocab_size_(vocab_size) {
    int64_t end = 0;
    for (const auto& stream : streams_) ends_.push_back(end += stream->num_samples());
    TYCHO_CHECK(end < int64_t{1} << 32,
                "[data] streams may have at most 2^32-1 samples together, these have {}", end);
  }

  int64_t num_samples() const override { return ends_.back(); }

  std::vector<std::vector<uint32_t>> shard_sizes() const override {
    std::vector<std::vector<uint32_t>> sizes;
    for (const auto& stream : streams_) sizes.push_back(stream->shard_sizes()[0]);
    return sizes;
  }

  void prefetch(std::span<const uint32_t> samples) override {
    std::vector<std::vector<uint32_t>> of_stream(streams_.size()), places(streams_.size());
    divide(samples, of_stream, places);
    for (size_t i = 0; i < streams_.size(); ++i)
      if (!of_stream[i].empty()) streams_[i]->prefetch(of_stream[i]);
  }

  bool prefetches() const override {
    return std::any_of(streams_.begin(), streams_.end(),
                       [](const auto& stream) { return stream->prefetches(); });
  }

  void cancel() override {
    for (const auto& stream : streams_) stream->cancel();
  }

  FetchCounts fetch_counts() const override {
    FetchCounts sum;
    for (const auto& stream : streams_) {
      const FetchCounts counts = stream->fetch_counts();
      sum.opened += counts.opened;
      sum.fetched += counts.fetched;
      sum.fetched_bytes += counts.fetched_bytes;
    }
    return sum;
  }

  Batch read_batch(std::span<const uint32_t> samples, int64_t num_sequences) override {
    std::vector<std::vector<uint32_t>> of_stream(streams_.size()), places(streams_.size());
    divide(samples, of_stream, places);
    Batch batch;
    for (size_t i = 0; i < streams_.size(); ++i) {
      if (of_stream[i].empty() && (i > 0 || !samples.empty())) continue;
      add(streams_[i]->read_batch(of_stream[i], static_cast<int64_t>(of_stream[i].size())), places[i],
          num_sequences, batch);
    }
    return batch;
  }

 private:
  /// Splits samples by stream: `of_stream` gets the numbers within each stream, `places` their rows in the
  /// batch.
  void divide(std::span<const uint32_t> samples, std::vector<std::vector<uint32_t>>& of_stream,
              std::vector<std::vector<uint32_t>>& places) const {
    for (size_t row = 0; row < samples.size(); ++row) {
      const auto stream =
          static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), samples[row]) - ends_.begin());
      of_stream[stream].push_back(samples[row] - static_cast<uint32_t>(stream == 0 ? 0 : ends_[stream - 1]));
      places[stream].push_back(static_cast<uint32_t>(row));
    }
  }

  void add(const Batch& part, std::span<const uint32_t> places, int64_t num_sequences, Batch& batch) const {
    const auto size = static_cast<size_t>(part.seq_len);
    if (batch.seq_len == 0) batch = empty_batch(num_sequences, part.seq_len, vocab_size_);
    if (!part.documents.empty()) batch.documents.resize(batch.tokens.size());
    if (!part.weights.empty()) batch.weights.resize(batch.tokens.size());
    for (size_t row = 0; row < places.size(); ++row) {
      const size_t from = row * size, to = places[row] * size;
      batch.tokens.put(to, part.tokens, from, size);
      batch.targets.put(to, part.targets, from, size);
      if (!part.weights.empty())
        std::copy_n(part.weights.begin() + static_cast<std::ptrdiff_t>(from), size,
                    batch.weights.begin() + static_cast<std::ptrdiff_t>(to));
      if (!part.documents.empty())
        std::copy_n(part.documents.begin() + static_cast<std::ptrdiff_t>(from), size,
                    batch.documents.begin() + static_cast<std::ptrdiff_t>(to));
    }
    batch.valid_tokens += part.valid_tokens;
  }

  std::vector<std::unique_ptr<RowReader>> streams_;
  int64_t vocab_size_;
  std::vector<int64_t> ends_;  // end of each stream, in the numbering of all
};

}  // namespace

std::unique_ptr<RowReader> make_streams_reader(std::vector<std::unique_ptr<RowReader>> streams,
                                               int64_t vocab_size) {
  return std::make_unique<StreamsReader>(std::move(streams), vocab_size);
}

}  // namespace tycho
