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

#include "trainer/data/record_source.h"
#include "trainer/data/text/byte_source.h"
#include "trainer/data/text/input_files.h"

namespace tycho {

/// Where long text files are cut.
enum class CutAt {
  kMillionCharacters,  // as LLM Foundry reads them
  kWords,              // at a place that changes no tokens, some MiB apart
};

/// Opens the texts of a column of a data set's folder.
using OpenDataSet =
    std::function<std::unique_ptr<RecordSource>(const std::string& folder, const std::string& column)>;

struct ReadRules {
  std::string field = "text";  // of JSONL; the column of the others
  bool keep_newlines = false;  // of text files; else CR and CR LF become LF, as where Python opens them
  CutAt cut = CutAt::kMillionCharacters;
  /// Text files become two documents: the second begins behind the first end of a line at or after so many
  /// bytes of the text as it is handed out, or, where no line ends in that piece, behind so many bytes.
  std::optional<int64_t> second_document_at = {};
  OpenDataSet open_data_set = {};  // none: data sets are an Error
};

/// Some text of one text file, some lines of a JSONL file, or some rows of the others.
struct TextChunk {
  size_t file = 0;  // in the list of files
  TextFormat format = TextFormat::kText;
  std::string text;
  std::vector<std::string> rows;  // of CSV, Parquet and data sets, instead of `text`
  std::map<size_t, std::string>
      bad_rows;                    // what is wrong with rows that cannot be used, by their place in `rows`
  bool first = true, last = true;  // kText: of its file
  int64_t line = 1,
          offset = 0;      // kJsonl: where the lines begin, in the file decompressed; else the first row
  int64_t file_bytes = 0;  // read from the files for it, for progress
};

/// A text file is one document; every line of a JSONL file that is not blank is one, and every row of CSV,
/// Parquet and a data set. Memory is bounded by a
/// few MiB, or by the longest line or row; of Parquet, by a page. Owned by one thread at a time. Errors are
/// kUnusable and name the file, and the byte where it is not UTF-8 text.
class DocumentReader {
 public:
  /// The files must outlive it.
  DocumentReader(const std::vector<InputFile>& files, ReadRules rules);

  /// The next chunk; nothing at the end. An empty text file is an empty chunk.
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
  std::unique_ptr<ByteSource> source_;     // of text and JSONL
  std::unique_ptr<RecordSource> records_;  // of the others
  std::string raw_;                        // read, not yet checked
  std::string pending_;                    // checked, not yet handed out
  int64_t raw_offset_ = 0, pending_offset_ = 0, reported_bytes_ = 0, line_ = 1;
  size_t counted_bytes_ = 0, counted_characters_ = 0;  // of pending_, how far find_cut has looked
  bool ended_ = false, first_ = true;
};

/// Takes what is wrong with a row that cannot be used.
using OnBadRow = std::function<void(const std::string& why)>;

/// Calls on_document with every document of a chunk that is not of a text file, and on_bad_row for every line
/// and row that cannot be used, also where on_document throws a BadRow; without on_bad_row these are an
/// Error. Both name file and line, or row.
void for_each_record(const TextChunk& chunk, const InputFile& file, const std::string& field,
                     const std::function<void(std::string_view)>& on_document,
                     const OnBadRow& on_bad_row = {});

}  // namespace tycho
