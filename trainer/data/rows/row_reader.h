// Reads rows of training data of any kind.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/rows/batch.h"

namespace tycho {

/// Properties of the run that data must fit, in addition to the data's own config.
struct RowShape {
  int64_t seq_len = 0;
  int64_t vocab_size = 0;          // tokens outside [0, vocab_size) are an Error
  std::string tokenizer;           // path of a tokenizer.json; for data that is text
  std::string key = "train_data";  // key of the recipe, for messages
  bool marks = false;              // weights may be negative: the loss reads them
};

/// Owned by one thread.
class RowReader {
 public:
  virtual ~RowReader() = default;
  virtual int64_t num_samples() const = 0;
  /// Number of samples of each shard, for each stream. SampleOrder is built from these sizes.
  virtual std::vector<std::vector<uint32_t>> shard_sizes() const {
    return {{static_cast<uint32_t>(num_samples())}};
  }
  /// Announces that the next samples read belong to this epoch. Only for data whose rows differ from epoch to
  /// epoch.
  virtual void start_epoch(int64_t /*epoch*/) {}
  /// Announces that these samples will be read soon, in this order. Returns at once.
  virtual void prefetch(std::span<const uint32_t> /*samples*/) {}
  /// True if prefetch() does anything.
  virtual bool prefetches() const { return false; }
  /// Ends waits for data that is being fetched, now and later, with an Error. From any thread.
  virtual void cancel() {}
  /// Counts of shards opened and fetched; zero for local data. From any thread.
  virtual FetchCounts fetch_counts() const { return {}; }
  /// Reads these samples, with targets and documents, as a batch of `num_sequences`. Rows without a sample
  /// have no target.
  virtual Batch read_batch(std::span<const uint32_t> samples, int64_t num_sequences) = 0;
  /// Tokens of each sample without its padding. Empty if the recipe does not trim padding: rows have seq_len
  /// tokens.
  virtual std::span<const int32_t> trimmed_lengths() const { return {}; }
  /// Reads a batch with rows of `width` tokens instead of seq_len; `width` is at least the samples'
  /// batch_width.
  virtual Batch read_trimmed(std::span<const uint32_t> samples, int64_t num_sequences, int64_t /*width*/) {
    return read_batch(samples, num_sequences);
  }
};

}  // namespace tycho
