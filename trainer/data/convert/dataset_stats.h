// What a data set of tokens contains, counted by reading all of it.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

/// How often each length occurs.
struct LengthCounts {
  std::map<int64_t, int64_t> counts;  // by length

  void add(int64_t length) { ++counts[length]; }
  int64_t number() const;
  int64_t total() const;
  /// The least length that a share of all (0 to 1) does not exceed; 0 of none.
  int64_t quantile(double share) const;
};

struct DatasetStats {
  int64_t samples = 0, tokens = 0, distinct_tokens = 0;
  int64_t text_tokens = 0;             // tokens that stand for text: not special ones; with a tokenizer
  int64_t text_bytes = 0;              // of those
  LengthCounts sample_tokens;          // tokens of each sample
  LengthCounts document_tokens;        // with a separator: of each document, the separator included
  std::optional<int32_t> ends_with;    // the separator that documents were counted by
  std::optional<int32_t> begins_with;  // the same, for one before each document
};

/// What stands between documents: at most one of both.
struct Separators {
  std::optional<int32_t> ends_with, begins_with;
};

/// From tycho.json of the split in `dir`, where its texts are one token each; nothing otherwise.
Separators separators_of(const std::string& dir, const Tokenizer& tokenizer);

/// Reads the column "tokens" of the split in `dir`. `tokenizer` may be null; tokens that it does not know
/// have no text. A document goes on in the next sample unless tycho.json says that what does not fit was
/// dropped. Throws Error (kUnusable) naming the sample.
DatasetStats dataset_stats(const std::string& dir, const Tokenizer* tokenizer, const Separators& separators);

}  // namespace tycho
