// Reads all rows at once, so that batches and their order are made of numbers in memory.
#include "trainer/data/chat/chat_dataset.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/chat/chat_template.h"
#include "trainer/data/chat/encode_rows.h"
#include "trainer/data/chat/example_packer.h"
#include "trainer/data/chat/mds_rows.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/rows/target_weights.h"
#include "trainer/data/tokenizer/local_tokenizer.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokenizer/tokenizer_of_rows.h"

namespace tycho {
namespace {

/// Identifies how rows become batches: readers use the data set's config for that.
std::string batches_identity(const ChatConfig& config) {
  const NumberOrAuto ratio = config.packing_ratio.value_or(NumberOrAuto{0, false});
  return fmt::format("|{}|{}|{}|{}|{}|{}|{}|{}", ratio.is_auto, ratio.value, config.packing_groups,
                     config.max_leftover_rows.value_or(-1), config.shuffle, config.shuffle_seed.value_or(-1),
                     config.trim_padding, config.bucket_batches);
}

/// Returns a text that is equal for two configs that would read the same rows.
std::string identity(const ChatConfig& config, const RowShape& shape) {
  std::string text = fmt::format(
      "chat|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", config.path, config.remote, config.split,
      static_cast<int>(config.bad_rows), config.chat_template, config.template_date,
      static_cast<int>(config.target_responses), static_cast<int>(config.target_prompts),
      config.min_target_prompt, config.eos_token_id.value_or(-1), config.pack, config.packs_batches(),
      static_cast<int>(config.padding_side), shape.seq_len, shape.vocab_size);
  text += fmt::format("|{}|{}", config.weights, shape.marks);
  text +=
      "|" + version_of(local_tokenizer(shape.tokenizer)) + "|" + chat_template_text(config, shape.tokenizer);
  for (const InputFile& file : input_files(config).files) text += "|" + version_of(file);
  return text + batches_identity(config);
}

}  // namespace

InputFiles input_files(const ChatConfig& config) {
  if (has_mds_rows(config)) return {.files = {{.path = config.path, .format = TextFormat::kDataSet}}};
  return find_input_files({config.path}, {.rows_only = true, .split = config.split});
}

ChatDataset::ChatDataset(const ChatConfig& config, const RowShape& shape, const std::atomic<int>& stop)
    : config_(config), place_(config.path), seq_len_(shape.seq_len), vocab_size_(shape.vocab_size) {
  weights_.marks = shape.marks;
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of_rows(shape, place_);
  template_text_ = chat_template_text(config, shape.tokenizer);
  const ChatEncoder encoder(config, template_text_, *tokenizer, seq_len_);
  filler_ = encoder.eos_token_id();
  fetch_rows(config);
  SkippedRows counted;
  SkippedRows* const skipped = config.bad_rows == BadRows::kSkip ? &counted : nullptr;
  if (has_mds_rows(config)) {
    if (!config.weights.empty())
      fail(ExitCode::kUnusable,
           "[data] {}: expected JSONL, whose lines can have a weight ({}), got an MDS data set: write the "
           "rows as "
           "JSONL, or leave out weights",
           place_, config.weights);
    check_tokenizer(config.path, tokenizer->hash(), shape.tokenizer);
    stored_rows_ = mds_shard_rows(config);
    shard_sizes_.resize(stored_rows_.size());
    shard_.end = stored_rows_.empty() ? 0 : stored_rows_[0];
    read_rows(*open_chat_blocks(open_mds_rows(config)), encoder, stop, skipped);
  } else {
    InputFiles files = input_files(config);
    for (const InputFile& file : files.files)
      read_rows(*open_chat_blocks(file, config.weights), encoder, stop, skipped);
    notes_ = std::move(files.notes);
  }
  if (num_read_ == 0 && counted.count > 0)
    fail(ExitCode::kUnusable, "[data] no row of {} can be used; the first one: {}", place_,
         counted.reasons.front());
  if (num_read_ == 0)
    fail(ExitCode::kUnusable,
         "[data] {} has no rows: expected one JSON object per line, or rows of Parquet or CSV", place_);
  note_losses(counted);
  note_template(config, *tokenizer);
  if (config.packs_batches()) return;
  if (config.pack) {
    rows_ = pack_examples(lengths_, seq_len_);
  } else {
    for (uint32_t i = 0; i < lengths_.size(); ++i) rows_.push_back({i});
  }
}

void ChatDataset::read_rows(ChatBlocks& blocks, const ChatEncoder& encoder, const std::atomic<int>& stop,
                            SkippedRows* skipped) {
  size_t first = 0;
  while (const auto block = blocks.next()) {
    std::vector<uint8_t> is_bad(block->size());  // by row, each written by one thread
    const auto encode = [&](size_t i) {
      try {
        return block->encode(i, encoder, vocab_size_);
      } catch (const Error&) {
        is_bad[i] = 1;
        throw;
      }
    };
    size_t row = 0;
    for (ChatExample& example : encode_rows(block->size(), encode, place_, stop, skipped)) {
      while (is_bad[row] != 0) ++row;
      keep(std::move(example), first + row++);
    }
    first += block->size();
  }
}

void ChatDataset::keep(ChatExample example, size_t row) {
  ++num_read_;
  num_templated_ += example.templated;
  num_truncated_ += example.truncated;
  num_tokens_read_ += std::ssize(example.tokens) + example.num_cut;
  num_tokens_cut_ += example.num_cut;
  if (!example.has_target()) {
    ++num_dropped_;
    return;
  }
  if (!stored_rows_.empty()) {
    while (row >= shard_.end) shard_.end += stored_rows_[++shard_.number];
    ++shard_sizes_[shard_.number];
  }
  if (!config_.weights.empty())
    weights_.given.push_back(
        target_weight(example.weight, weights_.marks, fmt::format("row {} of {}", row + 1, place_)));
  begins_.push_back(tokens_.size());
  lengths_.push_back(static_cast<int32_t>(example.tokens.size()));
  tokens_.insert(tokens_.end(), example.tokens.begin(), example.tokens.end());
  learnt_.insert(learnt_.end(), example.learnt.begin(), example.learnt.end());
}

void ChatDataset::note_losses(const SkippedRows& skipped) {
  if (lengths_.empty())
    fail(ExitCode::kUnusable,
         "[data] none of the {} examples of {} has a target within seq_len = {} tokens: raise seq_len",
         num_read_, place_, seq_len_);
  if (skipped.count > 0) warnings_.push_back(fmt::format("of {}, {}", place_, skipped.text()));
  if (num_cut() > 0)
    warnings_.push_back(fmt::format(
        "{} of {} examples of {} are longer than seq_len = {} and are cut: of all tokens, {:.1f} % "
        "are lost by cuts",
        num_cut(), num_read_, place_, seq_len_,
        100 * static_cast<double>(num_tokens_cut_) / static_cast<double>(num_tokens_read_)));
  if (num_dropped_ > 0)
    warnings_.push_back(
        fmt::format("{} of {} examples of {} have no target within seq_len = {} and are dropped",
                    num_dropped_, num_read_, place_, seq_len_));
}

void ChatDataset::note_template(const ChatConfig& config, const Tokenizer& tokenizer) {
  const std::vector<std::string> missing = missing_template_tokens(config, tokenizer);
  if (num_templated_ > 0 && !missing.empty())
    warnings_.push_back(fmt::format(
        "{} are not in the tokenizer's vocabulary: in the messages of {} they are encoded as text",
        fmt::join(missing, " and "), place_));
}

std::vector<uint32_t> ChatDataset::shard_sizes() const {
  if (config_.pack && !config_.packs_batches()) return {static_cast<uint32_t>(num_rows())};
  if (stored_rows_.empty()) return {static_cast<uint32_t>(lengths_.size())};
  std::vector<uint32_t> sizes = shard_sizes_;
  std::erase(sizes, 0u);
  return sizes;
}

std::vector<int32_t> ChatDataset::row_lengths() const {
  std::vector<int32_t> sums;
  for (const auto& row : rows_) {
    sums.push_back(0);
    for (const uint32_t example : row) sums.back() += lengths_[example];
  }
  return sums;
}

Batch ChatDataset::read_batch(std::span<const uint32_t> rows, int64_t num_sequences, int64_t width) const {
  std::vector<std::span<const uint32_t>> examples;
  for (const uint32_t row : rows) examples.emplace_back(rows_[row]);
  return read_rows(examples, num_sequences, width);
}

Batch ChatDataset::read_rows(std::span<const std::span<const uint32_t>> rows, int64_t num_sequences,
                             int64_t width) const {
  TYCHO_CHECK(std::cmp_less_equal(rows.size(), num_sequences),
              "[data] {} samples do not fit into a batch of {}", rows.size(), num_sequences);
  Batch batch = empty_batch(num_sequences, width, vocab_size_, filler_);
  // Filler after an example is seen by none of its tokens; filler before it must be another document.
  if (config_.pack || config_.padding_side == PaddingSide::kLeft)
    batch.documents.assign(batch.tokens.size(), 0);
  if (!config_.weights.empty()) batch.weights.assign(batch.tokens.size(), 0.0f);
  for (size_t b = 0; b < rows.size(); ++b) fill_row(rows[b], b, batch);
  return batch;
}

void ChatDataset::fill_row(std::span<const uint32_t> examples, size_t row, Batch& batch) const {
  int64_t free = batch.seq_len;
  for (const uint32_t example : examples) free -= lengths_[example];
  TYCHO_CHECK(free >= 0, "[data] the examples of a row have {} tokens more than its {}", -free,
              batch.seq_len);
  const bool left = config_.padding_side == PaddingSide::kLeft;
  size_t at = row * static_cast<size_t>(batch.seq_len) + static_cast<size_t>(left ? free : 0);
  int32_t document = left && free > 0 ? 1 : 0;
  for (const uint32_t example : examples) {
    const auto size = static_cast<size_t>(lengths_[example]);
    const int32_t* tokens = tokens_.data() + begins_[example];
    const uint8_t* learnt = learnt_.data() + begins_[example];
    batch.tokens.put(at, std::span(tokens, size));
    for (size_t t = 0; t < size; ++t, ++at) {
      if (!batch.documents.empty()) batch.documents[at] = document;
      if (t + 1 == size || learnt[t + 1] == 0) continue;
      batch.targets.set(at, tokens[t + 1]);
      if (!batch.weights.empty()) batch.weights[at] = weights_.given[example];
      ++batch.valid_tokens;
    }
    ++document;
  }
  if (!left && !batch.documents.empty())
    std::fill_n(batch.documents.begin() + static_cast<int64_t>(at), free, document);
}

std::shared_ptr<const ChatDataset> open_chat_dataset(const ChatConfig& config, const RowShape& shape,
                                                     const OpenedData& opened, const std::atomic<int>& stop) {
  fetch_rows(config);
  return opened.open<ChatDataset>(identity(config, shape),
                                  [&] { return std::make_shared<const ChatDataset>(config, shape, stop); });
}

}  // namespace tycho
