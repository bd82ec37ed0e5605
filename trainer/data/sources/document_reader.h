// Reads text, JSONL, CSV, Parquet and data sets of texts from front to back, in pieces that can be
// tokenised alone.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/rows/record_source.h"
#include "trainer/data/sources/byte_source.h"
#include "trainer/data/sources/input_files.h"
#include "trainer/data/sources/lent_file.h"

namespace tycho {

/// Places at which long text files are cut.
enum class CutAt {
  kMillionCharacters,  // as LLM Foundry reads them
  kWords,              // at a place that changes no tokens, some MiB apart
};

/// Opens the texts of a column of a data set's folder.
using OpenDataSet =
    std::function<std::unique_ptr<RecordSource>(const std::string& folder, const std::string& column)>;

struct ReadRules {
  std::string field = "text";  // field of JSONL; column of the other formats
  bool keep_newlines = false;  // in text files; else CR and CR LF become LF, as where Python opens them
  CutAt cut = CutAt::kMillionCharacters;
  /// Splits a text file into two documents. The second begins after the first end of a line at or after this
  /// many bytes of the text that is returned, or after this many bytes if no line ends in that piece.
  std::optional<int64_t> second_document_at = {};
  OpenDataSet open_data_set = {};  // none: data sets are an Error
  size_t first_file = 0;           // index of the file to begin with
};

/// Part of one text file, some lines of a JSONL file, or some rows of the other formats.
struct TextChunk {
  size_t file = 0;  // index in the list of files
  TextFormat format = TextFormat::kText;
  std::string text;
  std::vector<std::string> rows;           // for CSV, Parquet and data sets, instead of `text`
  std::map<size_t, std::string> bad_rows;  // why rows cannot be used, by their index in `rows`
  bool first = true, last = true;          // kText: first and last chunk of its document
  int64_t line = 1,
          offset = 0;  // kJsonl: line and byte at which the text begins, in the decompressed file; else the
                       // first row
  int64_t file_bytes = 0;  // bytes of the file that were read for this chunk, for progress
};

/// Splits files into documents: a text file is one document; so is every line of a JSONL file that is not
/// blank, and every row of CSV, Parquet and a data set. Memory is bounded by a few MiB, or by the longest
/// line or row; for Parquet, by a page. Owned by one thread at a time. Errors are kUnusable and name the
/// file, and the byte where it is not UTF-8 text.
class DocumentReader {
 public:
  /// `files` must outlive this object.
  DocumentReader(const std::vector<InputFile>& files, ReadRules rules);

  /// Returns the next chunk; nothing at the end. An empty text file is an empty chunk.
  std::optional<TextChunk> next();

  const ReadRules& rules() const { return rules_; }
  const InputFile& file(const TextChunk& chunk) const { return files_[chunk.file]; }

 private:
  void open();
  void fill();
  size_t find_cut();
  TextChunk next_text();
  size_t end_of_document(size_t size) const;
  std::optional<TextChunk> next_lines();
  std::optional<TextChunk> next_rows();
  TextChunk cut_off(size_t size);

  const std::vector<InputFile>& files_;
  ReadRules rules_;
  size_t file_ = 0;
  std::unique_ptr<LentFile> lent_;
  std::unique_ptr<ByteSource> source_;     // for text and JSONL
  std::unique_ptr<RecordSource> records_;  // for the other formats
  std::string raw_;                        // read, not yet checked
  std::string pending_;                    // checked, not yet returned
  int64_t raw_offset_ = 0, pending_offset_ = 0, reported_bytes_ = 0, line_ = 1;
  size_t counted_bytes_ = 0, counted_characters_ = 0;  // part of pending_ that find_cut has searched
  bool ended_ = false, first_ = true;
};

/// Receives the reason why a row cannot be used.
using OnBadRow = std::function<void(const std::string& why)>;

/// Calls on_document with every document of a chunk, which is not from a text file. Calls on_bad_row for
/// every line and row that cannot be used, also where on_document throws a BadRow. Without on_bad_row, throws
/// Error for these. Both name file and line, or row.
void for_each_record(const TextChunk& chunk, const InputFile& file, const std::string& field,
                     const std::function<void(std::string_view)>& on_document,
                     const OnBadRow& on_bad_row = {});

}  // namespace tycho
