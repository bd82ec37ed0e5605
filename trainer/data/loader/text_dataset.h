// Texts as rows of tokens, without a conversion: read and tokenised once, then kept in memory.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/rows/batch.h"
#include "trainer/data/rows/opened_data.h"
#include "trainer/data/rows/row_reader.h"
#include "trainer/data/rows/skipped_rows.h"
#include "trainer/data/sources/input_files.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/recipe/data.h"

namespace tycho {

/// Fetches remote texts. Returns the files and folders to read. Throws Error as fetch_file does.
std::vector<std::string> fetch_texts(const TextConfig& config);

/// Lists the files to read, after fetching remote ones. Throws Error as fetch_texts and find_input_files do.
InputFiles input_files(const TextConfig& config);

/// Rows equal those of TorchTitan 0.3's HuggingFaceTextDataset on one rank: for each document, in order,
/// every token but the last with the token after it as its target; all documents are joined and cut every
/// seq_len. Tokens left at the end are in no row. Immutable; read by several threads at once.
class TextDataset {
 public:
  /// Reads all files and tokenises them with a thread per core. Throws Error (kUnusable) naming file and line
  /// for input that is not text, when nothing separates documents, and when there is no row.
  TextDataset(const TextConfig& config, const RowShape& shape);

  int64_t num_rows() const { return std::ssize(tokens_) / seq_len_; }
  /// Warnings about rows that were skipped (bad_rows).
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// Notes for users about files that were left out of folders.
  const std::vector<std::string>& notes() const { return notes_; }
  /// Reads these rows. See RowReader::read_batch.
  Batch read_batch(std::span<const uint32_t> rows, int64_t num_sequences) const;

 private:
  SkippedRows read(const TextConfig& config, const Tokenizer& tokenizer);
  void add_token(int32_t token);
  void end_document();

  int64_t seq_len_, vocab_size_;
  bool separates_documents_;
  std::optional<int32_t> begin_, end_;  // tokens around every document, where the tokenizer adds none
  std::optional<int32_t> last_;         // last token of the document that is being read
  std::vector<std::string> warnings_, notes_;
  std::vector<int32_t> tokens_, targets_;
  std::vector<int64_t> document_ends_;  // in tokens_
};

/// Opens a data set. Returns the one in `opened` if its files are unchanged. May be called from any thread.
std::shared_ptr<const TextDataset> open_text_dataset(const TextConfig& config, const RowShape& shape,
                                                     const OpenedData& opened);

class TextReader final : public RowReader {
 public:
  explicit TextReader(std::shared_ptr<const TextDataset> data) : data_(std::move(data)) {}
  int64_t num_samples() const override { return data_->num_rows(); }
  Batch read_batch(std::span<const uint32_t> samples, int64_t num_sequences) override {
    return data_->read_batch(samples, num_sequences);
  }

 private:
  std::shared_ptr<const TextDataset> data_;
};

}  // namespace tycho
