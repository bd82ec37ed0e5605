// Statistics of files of texts, from reading all of them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/data/prepare/dataset_stats.h"
#include "trainer/data/rows/skipped_rows.h"
#include "trainer/data/sources/input_files.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

/// Counts documents that equal an earlier one. Exact for up to a million different documents; beyond that
/// only every second is considered, then every fourth, and so on.
class DuplicateCounter {
 public:
  explicit DuplicateCounter(size_t most_kept = size_t{1} << 20) : most_kept_(most_kept) {}
  /// `hash`: 64 bits of the document's checksum.
  void add(uint64_t hash);
  /// Returns the share of duplicates among the documents that were considered; 0 if there are none.
  double share() const;
  /// Returns k if one in k documents is considered: 1 if the share is exact.
  int64_t looks_at_one_in() const { return int64_t{1} << skipped_bits_; }

 private:
  size_t most_kept_;
  int skipped_bits_ = 0;                     // number of low bits that are zero in hashes that are kept
  std::map<uint64_t, int64_t> occurrences_;  // by hash
};

struct TextStats {
  int64_t files = 0, documents = 0, empty_documents = 0;
  SkippedRows skipped;  // rows that could not be used, where the rules skip them
  LengthCounts document_bytes;
  double duplicate_share = 0;  // share of documents that equal an earlier one
  int64_t duplicates_of_one_in = 1;
  int64_t tokens = 0;  // with a tokenizer; without the tokens that it adds to texts
  int64_t bytes() const { return document_bytes.total(); }
};

/// Reads all documents, and tokenises them where there is a tokenizer, with `threads` threads. Line ends of
/// text files are treated as in a conversion. Throws Error (kUnusable) naming file and line for input that is
/// not text.
TextStats text_stats(const InputFiles& inputs, const InputRules& rules, const Tokenizer* tokenizer,
                     int threads);

}  // namespace tycho
