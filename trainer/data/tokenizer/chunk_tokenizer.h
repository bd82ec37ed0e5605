// Tokenises the chunks of many documents on several threads and hands them out in order.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "trainer/data/rows/skipped_rows.h"
#include "trainer/data/sources/document_reader.h"
#include "trainer/data/sources/input_files.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/recipe/bad_rows.h"

namespace tycho {

/// Tokens of a TextChunk.
struct ChunkTokens {
  size_t file = 0;  // index in the list of files
  TextFormat format = TextFormat::kText;
  bool first = true, last = true;  // kText: first and last chunk of the document
  std::vector<int32_t> tokens;
  struct Document {
    size_t end = 0;  // in tokens
    int64_t text_bytes = 0;
    int64_t skipped_rows = 0;  // rows between the previous document and this one
  };
  std::vector<Document> documents;  // for the other formats
  SkippedRows skipped;              // skipped rows of the whole chunk
  int64_t text_bytes = 0, file_bytes = 0;
};

/// The constructor's arguments must outlive this object. A few chunks per thread are in memory at a time.
class ChunkTokenizer {
 public:
  /// `adds_tokens`: add the tokens that the tokenizer's own encoding puts around a text, once per document.
  ChunkTokenizer(const Tokenizer& tokenizer, DocumentReader& reader, bool adds_tokens, BadRows bad_rows,
                 int threads);

  /// Returns the tokens of the next chunk; nothing after the last. Called by one thread. Throws errors of
  /// reading and tokenising, those of the earliest chunk first.
  std::optional<ChunkTokens> next();

 private:
  struct Result {
    ChunkTokens tokens;
    std::exception_ptr error;
  };
  void work(const std::stop_token& stop);
  std::optional<TextChunk> take(const std::stop_token& stop, size_t& number);
  void put(size_t number, Result result);
  ChunkTokens encode(const TextChunk& chunk) const;

  const Tokenizer& tokenizer_;
  DocumentReader& reader_;
  const BadRows bad_rows_;
  std::vector<int32_t> begin_, end_;  // tokens around every document
  size_t window_;                     // how far the threads may run ahead
  std::mutex reading_;                // held by the thread that reads: chunks are numbered in order
  std::mutex mutex_;
  std::condition_variable_any changed_;
  size_t next_chunk_ = 0, next_result_ = 0;
  bool ended_ = false;
  std::map<size_t, Result> results_;
  std::vector<std::jthread> threads_;  // declared last, so that the threads stop before the members that they
                                       // use are destroyed
};

}  // namespace tycho
