// A batch of token sequences on the host.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/data/token_array.h"

namespace tycho {

/// B sequences of T tokens. targets[b, t] is the token that follows tokens[b, t], or kNoTarget where there
/// is none: at the last position, as in LLM Foundry, and where nothing is to be learnt. Both are of one type,
/// which the vocabulary decides.
struct Batch {
  int64_t num_sequences = 0;
  int64_t seq_len = 0;
  TokenArray tokens;   // [B, T]
  TokenArray targets;  // [B, T]
  // [B, T]: numbers that tell the documents of a row apart, not falling along it; empty: attention sees the
  // whole row.
  std::vector<int32_t> documents;
  int64_t valid_tokens = 0;  // targets that are not ignored
  double wait_s = 0;         // how long next() waited for it
};

/// Sequences of `filler` without targets and documents.
inline Batch empty_batch(int64_t num_sequences, int64_t seq_len, int64_t vocab_size, int32_t filler = 0) {
  const auto size = static_cast<size_t>(num_sequences * seq_len);
  return {.num_sequences = num_sequences,
          .seq_len = seq_len,
          .tokens = TokenArray(vocab_size, size, filler),
          .targets = TokenArray(vocab_size, size, kNoTarget)};
}

/// Shards of remote data that this process has used so far. Those that were not fetched were in the cache.
struct FetchCounts {
  int64_t opened = 0, fetched = 0;
  int64_t fetched_bytes = 0;
};

/// Where the data stands: plain data, saved in checkpoints. O(1) to restore.
struct DataCursor {
  int64_t epoch = 0;
  int64_t sample = 0;  // global samples already used of this epoch
  bool operator==(const DataCursor&) const = default;
};

}  // namespace tycho
