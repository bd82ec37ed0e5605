// Rows of training data, whatever kind of data they come from.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "trainer/data/batch.h"

namespace tycho {

/// What data must fit, beside its own config.
struct RowShape {
  int64_t seq_len = 0;
  int64_t vocab_size = 0;  // tokens outside [0, vocab_size) are an Error
  std::string tokenizer;   // path of a tokenizer.json; for data that is text
};

/// Owned by one thread.
class RowReader {
 public:
  virtual ~RowReader() = default;
  virtual int64_t num_samples() const = 0;
  /// These samples, their targets and documents as a batch of `num_sequences`. Rows without a sample have no
  /// target.
  virtual Batch read_batch(std::span<const uint32_t> samples, int64_t num_sequences) = 0;
};

}  // namespace tycho
