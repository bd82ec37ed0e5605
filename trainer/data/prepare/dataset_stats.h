// Statistics of a data set of tokens, from reading all of it.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

/// Number of occurrences of each length.
struct LengthCounts {
  std::map<int64_t, int64_t> counts;  // by length

  void add(int64_t length) { ++counts[length]; }
  int64_t number() const;
  int64_t total() const;
  /// Returns the least length that a `share` (0 to 1) of all does not exceed; 0 if there are none.
  int64_t quantile(double share) const;
};

struct DatasetStats {
  int64_t samples = 0, tokens = 0, distinct_tokens = 0;
  int64_t text_tokens = 0;             // tokens that stand for text, without special ones; with a tokenizer
  int64_t text_bytes = 0;              // bytes of text_tokens
  LengthCounts sample_tokens;          // tokens of each sample
  LengthCounts document_tokens;        // tokens of each document, separator included; with a separator
  std::optional<int32_t> ends_with;    // separator by which documents were counted
  std::optional<int32_t> begins_with;  // separator before each document, by which they were counted
};

/// Separator between documents: at most one of the two is set.
struct Separators {
  std::optional<int32_t> ends_with, begins_with;
};

/// Returns the separators in tycho.json of the split in `dir` whose texts are one token each; nothing
/// otherwise.
Separators separators_of(const std::string& dir, const Tokenizer& tokenizer);

/// Reads the column "tokens" of the split in `dir`. `tokenizer` may be null; tokens that it does not know
/// have no text. A document continues in the next sample unless tycho.json says that tokens beyond a sample
/// were dropped. Throws Error (kUnusable) naming the sample.
DatasetStats dataset_stats(const std::string& dir, const Tokenizer* tokenizer, const Separators& separators);

}  // namespace tycho
