// Cuts samples of one length into rows of another: where each row begins.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace tycho {

/// Joins the tokens of all samples and cuts them every `row_tokens`. Tokens left at the end are in no row.
struct Recut {
  int64_t sample_tokens = 1, row_tokens = 1;

  int64_t num_rows(int64_t num_samples) const { return num_samples * sample_tokens / row_tokens; }
  /// Sample in which a row begins, and index in that sample of the row's first token.
  int64_t first_sample(int64_t row) const { return row * row_tokens / sample_tokens; }
  int64_t first_token(int64_t row) const { return row * row_tokens % sample_tokens; }
  /// Returns the number of rows that begin in each shard, given the samples of each shard.
  std::vector<uint32_t> shard_rows(std::span<const uint32_t> shard_samples) const;
  /// Returns the samples that have tokens of these rows, in the order of the rows.
  std::vector<uint32_t> samples_of(std::span<const uint32_t> rows) const;
};

}  // namespace tycho
