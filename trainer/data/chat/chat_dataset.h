// Finetuning data as rows of tokens: read and tokenised once, then kept in memory.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/chat/chat_blocks.h"
#include "trainer/data/chat/chat_example.h"
#include "trainer/data/rows/batch.h"
#include "trainer/data/rows/opened_data.h"
#include "trainer/data/rows/row_reader.h"
#include "trainer/data/rows/skipped_rows.h"
#include "trainer/data/sources/input_files.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/recipe/chat_data.h"

namespace tycho {

/// Value of `stop` for callers that cannot be stopped.
inline const std::atomic<int> never_stopped = 0;

/// Lists the files to read. A remote must have been fetched. Throws Error as find_input_files does.
InputFiles input_files(const ChatConfig& config);

/// Immutable; read by several threads at once.
class ChatDataset {
 public:
  /// Reads all rows, tokenises them with a thread per core, and packs them. Throws Error (kUnusable) that
  /// names file and line for rows that are wrong, and for data of which nothing is left. Throws as
  /// encode_rows when it is stopped.
  ChatDataset(const ChatConfig& config, const RowShape& shape, const std::atomic<int>& stop);

  const ChatConfig& config() const { return config_; }
  int64_t seq_len() const { return seq_len_; }
  /// Tokens of each example, from 1 to seq_len. The index of an example here is its number in the functions
  /// below.
  std::span<const int32_t> lengths() const { return lengths_; }
  /// Number of examples that seq_len cuts and that still have a target, and of examples without a target,
  /// which are left out.
  int64_t num_cut() const { return num_truncated_ - num_dropped_; }
  int64_t num_dropped() const { return num_dropped_; }

  /// Number of rows that are the same in every epoch; 0 with config().packs_batches().
  int64_t num_rows() const { return static_cast<int64_t>(rows_.size()); }
  /// Number of rows of each shard of an MDS data set, or of examples where every epoch packs them anew; one
  /// number for other data. An order of samples is made of these.
  std::vector<uint32_t> shard_sizes() const;
  /// Tokens of each row that is the same in every epoch.
  std::vector<int32_t> row_lengths() const;
  /// Reads these rows. See RowReader::read_batch.
  Batch read_batch(std::span<const uint32_t> rows, int64_t num_sequences) const {
    return read_batch(rows, num_sequences, seq_len_);
  }
  Batch read_batch(std::span<const uint32_t> rows, int64_t num_sequences, int64_t width) const;
  /// Makes a batch of `num_sequences` rows, `width` tokens wide. Row i holds the examples rows[i], which must
  /// fit. Rows without examples have no target. With `pack`, and where padding is on the left, documents
  /// number the examples and the padding from left to right.
  Batch read_rows(std::span<const std::span<const uint32_t>> rows, int64_t num_sequences,
                  int64_t width) const;
  /// Returns the template that turned the conversations into text; "" if no row was a conversation.
  std::string used_template() const { return num_templated_ > 0 ? template_text_ : ""; }
  /// Warnings about rows that were skipped, examples that were cut or dropped, and a template whose special
  /// tokens are not in the tokenizer's vocabulary.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// Notes for users about files that were left out of folders.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void read_rows(ChatBlocks& blocks, const ChatEncoder& encoder, const std::atomic<int>& stop,
                 SkippedRows* skipped);
  void keep(ChatExample example, size_t row);
  void note_losses(const SkippedRows& skipped);
  void note_template(const ChatConfig& config, const Tokenizer& tokenizer);
  void fill_row(std::span<const uint32_t> examples, size_t row, Batch& batch) const;

  ChatConfig config_;
  std::string place_, template_text_;
  int64_t seq_len_, vocab_size_;
  int32_t filler_ = 0;  // eos, as in LLM Foundry: it has no target, and no token with a target attends to it
  std::vector<int32_t> tokens_;  // tokens of all examples
  std::vector<uint8_t> learnt_;  // by token
  std::vector<size_t> begins_;   // in tokens_, by example
  std::vector<int32_t> lengths_;
  struct {
    bool marks = false;        // they may be negative
    std::vector<float> given;  // by example, with config_.weights
  } weights_;
  std::vector<uint32_t> stored_rows_;  // rows of each shard of an MDS data set
  std::vector<uint32_t> shard_sizes_;  // examples of each shard
  struct {
    size_t number = 0, end = 0;  // of the last row, and the first row after it
  } shard_;
  std::vector<std::vector<uint32_t>> rows_;  // examples
  int64_t num_read_ = 0, num_templated_ = 0, num_truncated_ = 0, num_dropped_ = 0;
  int64_t num_tokens_read_ = 0, num_tokens_cut_ = 0;
  std::vector<std::string> warnings_, notes_;
};

/// Opens a data set. Returns the one in `opened` if its files are unchanged. May be called from any thread.
std::shared_ptr<const ChatDataset> open_chat_dataset(const ChatConfig& config, const RowShape& shape,
                                                     const OpenedData& opened,
                                                     const std::atomic<int>& stop = never_stopped);

class ChatReader final : public RowReader {
 public:
  explicit ChatReader(std::shared_ptr<const ChatDataset> data) : data_(std::move(data)) {
    if (data_->config().trim_padding) trimmed_lengths_ = data_->row_lengths();
  }
  int64_t num_samples() const override { return data_->num_rows(); }
  std::vector<std::vector<uint32_t>> shard_sizes() const override { return {data_->shard_sizes()}; }
  Batch read_batch(std::span<const uint32_t> samples, int64_t num_sequences) override {
    return data_->read_batch(samples, num_sequences);
  }
  std::span<const int32_t> trimmed_lengths() const override { return trimmed_lengths_; }
  Batch read_trimmed(std::span<const uint32_t> samples, int64_t num_sequences, int64_t width) override {
    return data_->read_batch(samples, num_sequences, width);
  }

 private:
  std::shared_ptr<const ChatDataset> data_;
  std::vector<int32_t> trimmed_lengths_;
};

}  // namespace tycho
