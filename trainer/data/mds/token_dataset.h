// Samples of tokens from an MDS data set, for all integer types in which they can be stored.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/mds/mds_format.h"
#include "trainer/data/mds/mds_index.h"
#include "trainer/data/mds/mds_reader.h"
#include "trainer/data/mds/recut.h"
#include "trainer/data/mds/shard_source.h"
#include "trainer/data/rows/batch.h"
#include "trainer/data/rows/row_reader.h"
#include "trainer/recipe/data.h"

namespace tycho {

/// Owned by one thread.
class TokenDataset final : public RowReader {
 public:
  /// Opens the split that `config` names. Its column "tokens" must be an integer array, or "bytes" of int64
  /// (older data sets). Throws Error (kUnusable) for tokens outside [0, vocab_size), and for samples that do
  /// not have seq_len tokens, unless the config says that they are cut (`truncate`) or joined and cut
  /// (`recut`: samples below are then rows). The constructor checks the first sample, and the note about the
  /// tokenizer where there is one. `make_source` provides the shards; by default they come from the folder of
  /// the index, which is read unless `index` has it.
  TokenDataset(const MdsConfig& config, const RowShape& shape, const MakeShardSource& make_source = {},
               std::shared_ptr<const MdsIndex> index = nullptr);

  int64_t num_samples() const override { return num_rows_; }
  std::vector<std::vector<uint32_t>> shard_sizes() const override;
  void prefetch(std::span<const uint32_t> samples) override {
    recut_ ? reader_.prefetch(recut_->samples_of(samples)) : reader_.prefetch(samples);
  }
  bool prefetches() const override { return reader_.prefetches(); }
  void cancel() override { reader_.cancel(); }
  FetchCounts fetch_counts() const override { return reader_.fetch_counts(); }
  Batch read_batch(std::span<const uint32_t> samples, int64_t num_sequences) override;

 private:
  MdsArrayView array_of(int64_t sample);
  void check_length(int64_t sample, const MdsArrayView& array) const;
  /// Reads the tokens of a row, and their weights if `weights` is not empty.
  template <class Id>
  void read_row(int64_t row, std::span<Id> tokens, std::span<float> weights);
  /// Reads tokens of a sample, starting at token `first`, and their weights.
  template <class Id>
  void read(int64_t sample, int64_t first, std::span<Id> tokens, std::span<float> weights);
  void weigh(int64_t sample, int64_t first, std::span<float> weights);
  template <class Stored, class Id>
  void take_tokens(int64_t sample, const MdsArrayView& array, int64_t first, std::span<Id> tokens) const;
  /// Throws Error (kUnusable) for a column of "bytes" whose ids fit the vocabulary only as a narrower type.
  void refuse_narrow_bytes(int64_t sample, std::string_view value) const;
  /// Fills the rows of these samples, their targets and weights, and the documents of their tokens.
  template <class Id>
  void fill(std::span<const uint32_t> samples, std::vector<Id>& tokens, std::vector<Id>& targets,
            Batch& batch);

  MdsReader reader_;
  size_t column_;
  size_t weight_column_ = 0;  // with config_.weights
  std::string encoding_;
  MdsConfig config_;
  RowShape shape_;
  std::optional<Recut> recut_;
  int64_t num_rows_;
};

}  // namespace tycho
