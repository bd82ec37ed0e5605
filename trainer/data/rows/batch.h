// A batch of token sequences on the host.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "trainer/data/rows/token_array.h"

namespace tycho {

/// B sequences of T tokens. targets[b, t] is the token that follows tokens[b, t], or kNoTarget where there is
/// none: at the last position, as in LLM Foundry, and where nothing is to be learnt. Tokens and targets have
/// one type, which the size of the vocabulary decides.
struct Batch {
  int64_t num_sequences = 0;
  int64_t seq_len = 0;
  TokenArray tokens;   // [B, T]
  TokenArray targets;  // [B, T]
  // [B, T]: document of each token, as numbers that never decrease along a row and change at each new
  // document. If empty, attention sees the whole row.
  std::vector<int32_t> documents;
  // [B, T]: weight of the loss at each target, 0 where it is ignored; a negative one marks the target, which
  // weighs as much as without the sign. Results of target_weight(). If empty, all weigh 1.
  std::vector<float> weights;
  int64_t valid_tokens = 0;  // targets that are not ignored
  double wait_s = 0;         // how long next() waited for the batch
};

/// Returns the summed weight of the targets that are not ignored.
inline double weight_of(const Batch& batch) {
  if (batch.weights.empty()) return static_cast<double>(batch.valid_tokens);
  double sum = 0;
  for (const float weight : batch.weights) sum += std::abs(static_cast<double>(weight));
  return sum;
}

/// Returns sequences of `filler` without targets and documents.
inline Batch empty_batch(int64_t num_sequences, int64_t seq_len, int64_t vocab_size, int32_t filler = 0) {
  const auto size = static_cast<size_t>(num_sequences * seq_len);
  return {.num_sequences = num_sequences,
          .seq_len = seq_len,
          .tokens = TokenArray(vocab_size, size, filler),
          .targets = TokenArray(vocab_size, size, kNoTarget)};
}

/// Counts the shards of remote data that this process has used so far. Shards that were opened and not
/// fetched came from the cache.
struct FetchCounts {
  int64_t opened = 0, fetched = 0;
  int64_t fetched_bytes = 0;
};

/// Position in the training data: plain data, saved in checkpoints. Restoring it takes O(1).
struct DataCursor {
  int64_t epoch = 0;
  int64_t sample = 0;  // global samples already used of this epoch
  bool operator==(const DataCursor&) const = default;
};

}  // namespace tycho
