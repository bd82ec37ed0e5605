// Threads turn the lines of a chunk into values; the caller's thread writes them in their order.
#include "trainer/data/prepare/convert_chat.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/base/json.h"
#include "trainer/data/chat/chat_blocks.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/chat/chat_example.h"
#include "trainer/data/chat/encode_rows.h"
#include "trainer/data/prepare/conversion_state.h"
#include "trainer/data/prepare/leftovers.h"
#include "trainer/data/prepare/publication.h"
#include "trainer/data/sources/input_files.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {
namespace {

constexpr auto kReportEvery = std::chrono::milliseconds(100);

/// A sample: its values in the order of the columns.
struct ChatSample {
  std::vector<std::string> values;
  int64_t tokens = 0;
};

/// Returns text as Python's json.dumps writes it.
std::string python_json(const std::string& text) { return Json(text).dump(-1, ' ', /*ensure_ascii=*/true); }

std::string messages_json(const ChatRow& row) {
  std::string text;
  for (const ChatMessage& message : row.messages)
    text += fmt::format("{}{{\"role\": {}, \"content\": {}}}", text.empty() ? "" : ", ",
                        python_json(message.role), python_json(message.content));
  return "[" + text + "]";
}

ChatSample tokens_of_turns(const std::vector<TokenTurn>& turns) {
  ChatSample sample;
  std::string text;
  for (const TokenTurn& turn : turns) {
    text += fmt::format("{}{{\"input_ids\": [{}], \"labels\": [{}]}}", text.empty() ? "" : ", ",
                        fmt::join(turn.prompt, ", "), fmt::join(turn.response, ", "));
    sample.tokens += std::ssize(turn.prompt) + std::ssize(turn.response);
  }
  sample.values = {"[" + text + "]"};
  return sample;
}

/// Makes samples of rows. Immutable; used by several threads at once.
class SampleMaker {
 public:
  explicit SampleMaker(const ConvertChatOptions& options) : skips_(options.bad_rows == BadRows::kSkip) {
    if (options.tokenizer.empty()) return;
    tokenizer_ = load_tokenizer(options.tokenizer);
    ChatConfig config{.path = options.inputs.front(),
                      .chat_template = options.chat_template,
                      .template_date = options.template_date};
    config.eos_token_id = 0;  // readers add their own, so none is searched for
    const std::string text = chat_template_text(config, options.tokenizer);
    encoder_.emplace(config, text, *tokenizer_, INT32_MAX);
    template_ = options.chat_template + "|" + options.template_date + "|" + text;
  }

  const Tokenizer* tokenizer() const { return tokenizer_.get(); }

  /// Identifies everything that samples depend on, except the files.
  std::string key() const {
    return fmt::format("chat|{}|{}", skips_,
                       encoder_ ? fmt::format("{}|{}", tokenizer_->hash(), hash_hex(template_)) : "");
  }

  std::vector<MdsColumn> columns(bool conversations) const {
    if (encoder_) return {{"turns", "json"}};
    if (conversations) return {{"messages", "json"}};
    return {{"prompt", "str"}, {"response", "str"}};
  }

  ChatSample make(const ChatRow& row, bool conversations) const {
    if (encoder_) return tokens_of_turns(encoder_->tokenize(row));
    if (row.messages.empty() == conversations)
      fail(ExitCode::kUnusable,
           "[{}] is a {}, and the first line is a {}: convert them apart, or to tokens with --tokenizer",
           row.place, conversations ? "prompt with a response" : "conversation",
           conversations ? "conversation" : "prompt with a response");
    if (conversations) return {{messages_json(row)}};
    return {{row.prompt, row.response}};
  }

 private:
  bool skips_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<ChatEncoder> encoder_;
  std::string template_;
};

/// The splits while they are written. They are opened at the first usable row, which determines the columns.
class ChatSplits {
 public:
  /// `left`: state of a conversion that was killed.
  ChatSplits(FileOps& files, const SplitRules& rules, std::optional<ConversionState> left)
      : files_(files), rules_(rules), left_(std::move(left)), lines_(left_ ? left_->documents : 0) {}

  bool is_open() const { return !writers_.empty(); }
  void open(const std::vector<MdsColumn>& columns) {
    const std::vector<std::string> names = rules_.names();
    for (size_t i = 0; i < names.size(); ++i) {
      SplitState* left = left_ ? &left_->splits.at(i) : nullptr;
      writers_.push_back(
          left ? std::make_unique<SplitWriter>(files_, rules_, names[i], columns, std::move(left->writer))
               : std::make_unique<SplitWriter>(files_, rules_, names[i], columns));
      counts_.push_back({.dir = writers_.back()->dir(), .skipped_rows = std::exchange(skipped_before_, 0)});
      if (!left) continue;
      counts_[i].documents = left->documents;
      counts_[i].bytes = left->bytes;
      counts_[i].tokens = left->packer.num_tokens;
      counts_[i].longest_bytes = left->longest_bytes;
      counts_[i].skipped_rows = left->skipped_rows;
    }
  }

  void write(const ChatSample& sample, int64_t text_bytes) {
    const size_t split = rules_.split_of(lines_++);
    writers_[split]->write(sample.values);
    ConvertedSplit& counts = counts_[split];
    ++counts.documents;
    counts.bytes += text_bytes;
    counts.longest_bytes = std::max(counts.longest_bytes, text_bytes);
    counts.tokens += sample.tokens;
  }

  void skip() { ++(is_open() ? counts_[rules_.split_of(lines_)].skipped_rows : skipped_before_); }

  const std::string& work_dir() const { return writers_[0]->work_dir(); }
  int64_t num_shards() const {
    int64_t count = 0;
    for (const auto& writer : writers_) count += writer->num_shards();
    return count;
  }
  ConversionState state(int64_t blocks) const {
    ConversionState state{.chunks = blocks, .documents = lines_};
    for (size_t i = 0; i < writers_.size(); ++i) {
      const ConvertedSplit& counts = counts_[i];
      state.splits.push_back({.documents = counts.documents,
                              .bytes = counts.bytes,
                              .longest_bytes = counts.longest_bytes,
                              .skipped_rows = counts.skipped_rows,
                              .packer = {.num_tokens = counts.tokens, .num_samples = counts.documents},
                              .writer = writers_[i]->state()});
    }
    return state;
  }

  void count(ConvertProgress& progress) const {
    progress.tokens = progress.samples = 0;
    for (const ConvertedSplit& split : counts_)
      progress.tokens += split.tokens, progress.samples += split.documents;
  }

  std::vector<ConvertedSplit> publish(const Tokenizer* tokenizer, const std::string& key) {
    std::vector<SplitWriter*> writers;
    for (size_t i = 0; i < writers_.size(); ++i) {
      ConvertedSplit& split = counts_[i];
      if (split.documents == 0)
        fail(ExitCode::kUsage, "[data] {} lines are too few for a share of {} in {}", lines_,
             rules_.val_fraction, rules_.val_split);
      ConversionNote note{.documents = split.documents, .text_bytes = split.bytes, .tokens = split.tokens};
      if (tokenizer != nullptr) note.tokenizer_hash = tokenizer->hash(), note.vocab_size = tokenizer->size();
      writers_[i]->finish(note);
      split.samples = writers_[i]->num_samples();
      split.shards = writers_[i]->num_shards();
      writers.push_back(writers_[i].get());
    }
    publish_together(files_, rules_.out_dir, key, writers, counts_);
    return counts_;
  }

 private:
  FileOps& files_;
  SplitRules rules_;
  std::optional<ConversionState> left_;
  std::vector<std::unique_ptr<SplitWriter>> writers_;
  std::vector<ConvertedSplit> counts_;
  int64_t lines_;
  int64_t skipped_before_ = 0;  // before the first line that can be used
};

/// Turns rows into samples, a block at a time.
class ChatConversion {
 public:
  /// `left`: state of a killed conversion with this key.
  ChatConversion(const ConvertChatOptions& options, const SampleMaker& maker, const std::string& key,
                 FileOps& files, std::optional<ConversionState> left)
      : options_(options),
        maker_(maker),
        blocks_left_(left ? left->chunks : 0),
        saver_(files, key, options.save_every_s, left ? left->num_shards() : 0),
        splits_(files, options.splits, std::move(left)) {}

  void convert(const InputFile& file) {
    const auto blocks = open_chat_blocks(file);
    if (blocks->has_tokens())
      fail(ExitCode::kUsage, "[data] {} holds tokens already: name it, or its folder, as path of t.data.chat",
           file.path);
    while (const auto block = blocks->next()) {
      convert(*block, file.path);
      report(blocks->file_bytes());
    }
  }

  ConvertProgress& progress() { return progress_; }
  ChatSplits& splits() { return splits_; }
  const SkippedRows& skipped() const { return skipped_; }

 private:
  void convert(const ChatBlock& block, const std::string& path) {
    const size_t count = block.size();
    if (!conversations_) find_kind(block);
    if (blocks_++ < blocks_left_ || count == 0) return;  // in the splits already
    std::vector<ChatSample> samples(count);
    SkippedRows* const skipped = options_.bad_rows == BadRows::kSkip ? &skipped_ : nullptr;
    const std::vector<bool> is_good = for_each_good_row(
        count, [&](size_t i) { samples[i] = maker_.make(block.row(i), conversations_.value_or(false)); },
        options_.threads, path, never_stopped, skipped);
    for (size_t i = 0; i < count; ++i)
      is_good[i] ? splits_.write(samples[i], block.text_bytes(i)) : splits_.skip();
    if (splits_.is_open())
      saver_.save_if_due(splits_.work_dir(), splits_.num_shards(), [&] { return splits_.state(blocks_); });
  }

  /// Determines the kind of all rows from the first usable row of the block, if there is one.
  void find_kind(const ChatBlock& block) {
    for (size_t i = 0; i < block.size() && !conversations_; ++i) {
      try {
        conversations_ = !block.row(i).messages.empty();
      } catch (const Error&) {
        if (options_.bad_rows != BadRows::kSkip) throw;
      }
    }
    if (conversations_) splits_.open(maker_.columns(*conversations_));
  }

  void report(int64_t file_bytes) {
    progress_.bytes_done += file_bytes;
    splits_.count(progress_);
    const auto now = std::chrono::steady_clock::now();
    if (!options_.progress || now - reported_ < kReportEvery) return;
    reported_ = now;
    options_.progress(progress_);
  }

  const ConvertChatOptions& options_;
  const SampleMaker& maker_;
  const int64_t blocks_left_;  // blocks that the killed conversion has converted
  int64_t blocks_ = 0;
  StateSaver saver_;
  ChatSplits splits_;
  ConvertProgress progress_;
  std::optional<bool> conversations_;  // kind of the rows, once the first usable one is known
  SkippedRows skipped_;
  std::chrono::steady_clock::time_point reported_ = std::chrono::steady_clock::now();
};

}  // namespace

ConvertResult convert_chat(const ConvertChatOptions& options, FileOps& files) {
  if (options.inputs.empty())
    fail(ExitCode::kUsage, "[data] name at least one JSONL, CSV, Parquet or Arrow file or folder to convert");
  check_splits(options.splits);
  const SampleMaker maker(options);
  const InputFiles inputs = find_input_files(
      options.inputs,
      {.rows_only = true,
       .split = options.splits.split,
       .takes_unsplit = true,
       .configuration = options.configuration,
       .passing_folder = options.keeps_fetched ? "" : passing_folder_of(options.splits.out_dir),
       .downloads = options.threads});
  ConvertResult result{.notes = inputs.notes};
  const std::string& out_dir = options.splits.out_dir;
  make_dirs(files, out_dir);
  const std::string key = conversion_key(maker.key(), options.splits, inputs.files);
  if (const auto complete = complete_publications(files, out_dir, key)) {
    result.splits = *complete;
    result.notes.push_back(kPublicationCompleted);
    return result;
  }
  check_free(options.splits);
  std::optional<ConversionState> left = adopt_conversion(files, options.splits, key);
  if (left) result.notes.push_back(continuation_note(left->documents));
  result.warnings = sweep_leftovers(files, out_dir, key);
  if (!options.tokenizer.empty()) keep_tokenizer(files, out_dir, options.tokenizer);
  ChatConversion conversion(options, maker, key, files, std::move(left));
  for (const InputFile& file : inputs.files) conversion.progress().bytes_total += file.bytes;
  for (const InputFile& file : inputs.files) conversion.convert(file);
  SkippedRows skipped = conversion.skipped();
  if (!conversion.splits().is_open())
    fail(ExitCode::kUnusable, "[data] {} has no rows to convert{}", options.inputs.front(),
         skipped.count > 0 ? ": " + skipped.text() : "");
  result.splits = conversion.splits().publish(maker.tokenizer(), key);
  skipped.count = skipped_rows(result.splits);
  if (skipped.count > 0) result.warnings.push_back(skipped.text());
  if (options.progress) options.progress(conversion.progress());
  return result;
}

}  // namespace tycho
