// What files of texts contain, counted by reading all of them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/data/convert/dataset_stats.h"
#include "trainer/data/skipped_rows.h"
#include "trainer/data/text/input_files.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

/// How many of the documents so far are the same as an earlier one. Exact for up to a million different ones;
/// beyond that only every second is looked at, then every fourth, and so on.
class DuplicateCounter {
 public:
  explicit DuplicateCounter(size_t most_kept = size_t{1} << 20) : most_kept_(most_kept) {}
  /// `hash`: 64 bits of the document's checksum.
  void add(uint64_t hash);
  /// The share of the documents that were looked at, 0 of none.
  double share() const;
  /// One of so many documents was looked at: 1 where the share is exact.
  int64_t looks_at_one_in() const { return int64_t{1} << skipped_bits_; }

 private:
  size_t most_kept_;
  int skipped_bits_ = 0;                     // that are zero in hashes that are kept
  std::map<uint64_t, int64_t> occurrences_;  // by hash
};

struct TextStats {
  int64_t files = 0, documents = 0, empty_documents = 0;
  SkippedRows skipped;  // where the rules skip rows that cannot be used
  LengthCounts document_bytes;
  double duplicate_share = 0;  // of documents that are the same as an earlier one
  int64_t duplicates_of_one_in = 1;
  int64_t tokens = 0;  // with a tokenizer: what it adds to texts left out
  int64_t bytes() const { return document_bytes.total(); }
};

/// Reads everything, and tokenises it where there is a tokenizer, with so many threads. Text files have their
/// line ends as they are converted. Throws Error (kUnusable) naming file and line for what is not text.
TextStats text_stats(const InputFiles& inputs, const InputRules& rules, const Tokenizer* tokenizer,
                     int threads);

}  // namespace tycho
