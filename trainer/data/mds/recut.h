// Rows of one length out of samples of another: where each row begins.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace tycho {

/// The tokens of all samples, one sample after the other, cut every `row_tokens`. What is left at the end is
/// in no row.
struct Recut {
  int64_t sample_tokens = 1, row_tokens = 1;

  int64_t num_rows(int64_t num_samples) const { return num_samples * sample_tokens / row_tokens; }
  /// The sample in which a row begins, and the token of it that is the row's first.
  int64_t first_sample(int64_t row) const { return row * row_tokens / sample_tokens; }
  int64_t first_token(int64_t row) const { return row * row_tokens % sample_tokens; }
  /// Rows that begin in each shard, from the samples of each.
  std::vector<uint32_t> shard_rows(std::span<const uint32_t> shard_samples) const;
  /// Samples that have tokens of these rows, in the order of the rows.
  std::vector<uint32_t> samples_of(std::span<const uint32_t> rows) const;
};

}  // namespace tycho
