// A batch is read stream by stream, and its rows are put where they belong.
#include "trainer/data/loader/streams_reader.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"

namespace tycho {
namespace {

void copy_row(const std::vector<int32_t>& from, size_t row, std::vector<int32_t>& to, size_t place,
              size_t size) {
  std::copy_n(from.begin() + static_cast<int64_t>(row * size), size,
              to.begin() + static_cast<int64_t>(place * size));
}

class StreamsReader final : public RowReader {
 public:
  explicit StreamsReader(std::vector<std::unique_ptr<RowReader>> streams) : streams_(std::move(streams)) {
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
  /// The samples of each stream by its own numbers, and their rows.
  void divide(std::span<const uint32_t> samples, std::vector<std::vector<uint32_t>>& of_stream,
              std::vector<std::vector<uint32_t>>& places) const {
    for (size_t row = 0; row < samples.size(); ++row) {
      const auto stream =
          static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), samples[row]) - ends_.begin());
      of_stream[stream].push_back(samples[row] - static_cast<uint32_t>(stream == 0 ? 0 : ends_[stream - 1]));
      places[stream].push_back(static_cast<uint32_t>(row));
    }
  }

  static void add(const Batch& part, std::span<const uint32_t> places, int64_t num_sequences, Batch& batch) {
    const auto size = static_cast<size_t>(part.seq_len);
    const size_t all = static_cast<size_t>(num_sequences) * size;
    if (batch.seq_len == 0) {
      batch.num_sequences = num_sequences;
      batch.seq_len = part.seq_len;
      batch.tokens.assign(all, 0);
      batch.targets.assign(all, kNoTarget);
    }
    if (!part.documents.empty()) batch.documents.resize(all);
    for (size_t row = 0; row < places.size(); ++row) {
      copy_row(part.tokens, row, batch.tokens, places[row], size);
      copy_row(part.targets, row, batch.targets, places[row], size);
      if (!part.documents.empty()) copy_row(part.documents, row, batch.documents, places[row], size);
    }
    batch.valid_tokens += part.valid_tokens;
  }

  std::vector<std::unique_ptr<RowReader>> streams_;
  std::vector<int64_t> ends_;  // of each stream, in the numbering of all
};

}  // namespace

std::unique_ptr<RowReader> make_streams_reader(std::vector<std::unique_ptr<RowReader>> streams) {
  return std::make_unique<StreamsReader>(std::move(streams));
}

}  // namespace tycho
