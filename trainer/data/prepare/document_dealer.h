// Documents on their way to the samples of their splits.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/mds/mds_format.h"
#include "trainer/data/prepare/conversion_state.h"
#include "trainer/data/prepare/convert.h"
#include "trainer/data/prepare/publication.h"
#include "trainer/data/prepare/split_writer.h"
#include "trainer/data/prepare/token_packer.h"
#include "trainer/data/sources/input_files.h"
#include "trainer/data/tokenizer/chunk_tokenizer.h"

namespace tycho {

/// Returns the columns of data sets of tokens.
inline std::vector<MdsColumn> token_columns() { return {{"tokens", "ndarray:int32"}}; }
/// Returns the rules of the splits that a conversion writes.
inline SplitRules split_rules(const ConvertOptions& options) {
  return {options.out_dir,    options.split,  options.val_split,  options.val_fraction,
          options.size_limit, options.hashes, options.compression};
}

/// One split while it is written: its packer, shards and counts.
class SplitInProgress {
 public:
  /// `most_samples`: further ones are dropped.
  SplitInProgress(FileOps& files, const SplitRules& rules, const std::string& split,
                  TokenPacker::Rules packing, int64_t most_samples)
      : most_samples_(most_samples),
        writer_(files, rules, split, token_columns()),
        split_({.dir = writer_.dir()}),
        packer_(std::move(packing), [this](std::span<const int32_t> sample) { write(sample); }) {}

  /// Continues from the work folder and state of a conversion that was killed.
  SplitInProgress(FileOps& files, const SplitRules& rules, const std::string& split,
                  TokenPacker::Rules packing, int64_t most_samples, SplitState state)
      : most_samples_(most_samples),
        writer_(files, rules, split, token_columns(), std::move(state.writer)),
        split_({.dir = writer_.dir(),
                .documents = state.documents,
                .bytes = state.bytes,
                .longest_bytes = state.longest_bytes,
                .skipped_rows = state.skipped_rows}),
        part_bytes_(state.part_bytes),
        packer_(std::move(packing), [this](std::span<const int32_t> sample) { write(sample); }) {
    packer_.restore(std::move(state.packer));
  }

  SplitState state() const {
    return {split_.documents, split_.bytes,    split_.longest_bytes, split_.skipped_rows,
            part_bytes_,      packer_.state(), writer_.state()};
  }

  /// Adds a part of one document.
  void add_part(const ChunkTokens& part) {
    packer_.add_part(part.tokens, part.first, part.last);
    part_bytes_ += part.text_bytes;
    if (part.last) count_document(std::exchange(part_bytes_, 0));
  }

  void add_document(std::span<const int32_t> tokens, int64_t text_bytes) {
    packer_.add_document(tokens);
    count_document(text_bytes);
  }

  void add_skipped(int64_t rows) { split_.skipped_rows += rows; }

  const std::string& work_dir() const { return writer_.work_dir(); }
  int64_t num_shards() const { return writer_.num_shards(); }
  int64_t num_tokens() const { return packer_.num_tokens(); }
  int64_t num_samples() const { return writer_.num_samples(); }
  bool is_full() const { return num_samples() >= most_samples_; }

  /// Completes the files. The split keeps its temporary name.
  void finish(ConversionNote note) {
    packer_.finish();
    if (packer_.num_samples() == 0) {
      fail(ExitCode::kUnusable,
           "[data] the text for {} has {} tokens, too few for one sample of {}; use more text or smaller "
           "--concat-tokens",
           split_.dir, packer_.num_tokens(), note.concat_tokens);
    }
    split_.tokens = packer_.num_tokens();
    split_.samples = num_samples();
    split_.dropped_tokens = split_.tokens - split_.samples * note.concat_tokens;
    note.documents = split_.documents;
    note.text_bytes = split_.bytes;
    note.tokens = split_.tokens;
    note.dropped_tokens = split_.dropped_tokens;
    writer_.finish(std::move(note));
    split_.shards = writer_.num_shards();
  }

  SplitWriter& writer() { return writer_; }
  const ConvertedSplit& counts() const { return split_; }

 private:
  void write(std::span<const int32_t> sample) {
    if (is_full()) return;
    writer_.write({encode_mds_array(sample.data(), static_cast<int64_t>(sample.size()), sizeof(int32_t))});
  }

  void count_document(int64_t text_bytes) {
    ++split_.documents;
    split_.bytes += text_bytes;
    split_.longest_bytes = std::max(split_.longest_bytes, text_bytes);
  }

  const int64_t most_samples_;
  SplitWriter writer_;
  ConvertedSplit split_;
  int64_t part_bytes_ = 0;  // bytes of the unfinished document
  TokenPacker packer_;
};

/// Deals the documents to the splits, in order.
class DocumentDealer {
 public:
  /// `divides_text`: there are two documents, and the second one is for validation.
  DocumentDealer(FileOps& files, const ConvertOptions& options, const TokenPacker::Rules& packing,
                 bool divides_text, std::optional<ConversionState> left)
      : rules_(split_rules(options)),
        most_documents_(options.max_documents.value_or(INT64_MAX)),
        divides_text_(divides_text),
        documents_(left ? left->documents : 0) {
    const std::vector<std::string> names = rules_.names();
    const int64_t most = options.max_samples.value_or(INT64_MAX);
    for (size_t i = 0; i < names.size(); ++i)
      splits_.push_back(left ? std::make_unique<SplitInProgress>(files, rules_, names[i], packing, most,
                                                                 std::move(left->splits.at(i)))
                             : std::make_unique<SplitInProgress>(files, rules_, names[i], packing, most));
  }

  const std::string& work_dir() const { return splits_[0]->work_dir(); }
  int64_t num_shards() const {
    int64_t count = 0;
    for (const auto& split : splits_) count += split->num_shards();
    return count;
  }
  /// `chunks`: number of chunks of the file with index `file` that were added.
  ConversionState state(int64_t file, int64_t chunks) const {
    ConversionState state{.file = file, .chunks = chunks, .documents = documents_};
    for (const auto& split : splits_) state.splits.push_back(split->state());
    return state;
  }

  /// True if it has as many documents or samples as the options allow.
  bool is_full() const {
    return documents_ >= most_documents_ ||
           std::all_of(splits_.begin(), splits_.end(), [](const auto& split) { return split->is_full(); });
  }
  /// Leaves the work folders for the next call.
  void keep() {
    for (const auto& split : splits_) split->writer().keep();
  }

  void add(const ChunkTokens& chunk) {
    if (chunk.format == TextFormat::kText) {
      split().add_part(chunk);
      documents_ += chunk.last;
      return;
    }
    size_t begin = 0;
    int64_t skipped = chunk.skipped.count;
    for (const ChunkTokens::Document& document : chunk.documents) {
      if (is_full()) return;
      split().add_skipped(document.skipped_rows);
      skipped -= document.skipped_rows;
      split().add_document(std::span(chunk.tokens).subspan(begin, document.end - begin), document.text_bytes);
      begin = document.end;
      ++documents_;
    }
    if (!is_full()) split().add_skipped(skipped);
  }

  void count(ConvertProgress& progress) const {
    progress.tokens = progress.samples = 0;
    for (const auto& split : splits_)
      progress.tokens += split->num_tokens(), progress.samples += split->num_samples();
  }

  /// `reasons`: why rows were skipped.
  std::vector<ConvertedSplit> publish(const ConversionNote& note, const std::string& key,
                                      const std::vector<std::string>& reasons, FileOps& files) {
    if (documents_ == 0 && !reasons.empty())
      fail(ExitCode::kUnusable, "[data] no row can be used; the first one: {}", reasons.front());
    if (!divides_text_ && rules_.validation_period() > documents_)
      fail(ExitCode::kUsage,
           "[data] {} documents are too few for a share of {} in {}; each text file, each line of JSONL "
           "and each row of the others is one document",
           documents_, rules_.val_fraction, rules_.val_split);
    std::vector<SplitWriter*> writers;
    std::vector<ConvertedSplit> counts;
    for (const auto& split : splits_) {
      split->finish(note);
      writers.push_back(&split->writer());
      counts.push_back(split->counts());
    }
    publish_together(files, rules_.out_dir, key, writers, counts);
    return counts;
  }

 private:
  SplitInProgress& split() {
    return *splits_[divides_text_ ? static_cast<size_t>(documents_ > 0) : rules_.split_of(documents_)];
  }

  const SplitRules rules_;
  const int64_t most_documents_;
  const bool divides_text_;
  int64_t documents_;
  std::vector<std::unique_ptr<SplitInProgress>> splits_;
};

}  // namespace tycho
