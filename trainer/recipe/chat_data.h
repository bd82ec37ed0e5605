// Configuration of data for finetuning.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "trainer/base/fields.h"
#include "trainer/recipe/bad_rows.h"

namespace tycho {

enum class TargetResponses { kLast, kAll };
constexpr EnumNames<TargetResponses, 2> enum_names(TargetResponses) {
  return {{{"last", TargetResponses::kLast}, {"all", TargetResponses::kAll}}};
}

enum class TargetPrompts { kNone, kAll };
constexpr EnumNames<TargetPrompts, 2> enum_names(TargetPrompts) {
  return {{{"none", TargetPrompts::kNone}, {"all", TargetPrompts::kAll}}};
}

enum class PaddingSide { kRight, kLeft };
constexpr EnumNames<PaddingSide, 2> enum_names(PaddingSide) {
  return {{{"right", PaddingSide::kRight}, {"left", PaddingSide::kLeft}}};
}

enum class ChatCompat { kNone, kComposer };
constexpr EnumNames<ChatCompat, 2> enum_names(ChatCompat) {
  return {{{"none", ChatCompat::kNone}, {"composer", ChatCompat::kComposer}}};
}

/// Conversations, and prompts with responses, as JSONL, Parquet, Arrow or MDS. LLM Foundry calls this
/// finetuning.
struct ChatConfig {
  static constexpr const char* kKind = "chat";
  static constexpr const char* kHelp =
      "Conversations, and prompts with responses, as JSONL, Parquet, Arrow or MDS.";
  std::string path;
  std::string split = "train";
  std::string remote;
  std::string remote_hash;
  BadRows bad_rows = BadRows::kError;
  std::string chat_template = "chatml";
  std::string template_date;
  TargetResponses target_responses = TargetResponses::kLast;
  TargetPrompts target_prompts = TargetPrompts::kNone;
  int64_t min_target_prompt = 0;
  std::optional<int64_t> eos_token_id;
  bool pack = false;
  std::optional<NumberOrAuto> packing_ratio;
  int64_t packing_groups = 1;
  std::optional<int64_t> max_leftover_rows;
  PaddingSide padding_side = PaddingSide::kRight;
  bool trim_padding = false;
  int64_t bucket_batches = 1;
  ChatCompat compat = ChatCompat::kNone;
  std::string weights;
  bool shuffle = true;
  std::optional<int64_t> shuffle_seed;
  int64_t prefetch = 4;

  /// Name of the data in messages.
  std::string place() const { return path; }
  /// Text that `tycho plan` adds about the rows.
  std::string rows_text() const;
  /// True if examples are packed batch by batch, so that every epoch has its own rows.
  bool packs_batches() const { return pack && packing_ratio.has_value(); }
  /// True if the remote is one file.
  bool has_remote_file() const { return !remote_ending().empty(); }
  /// Ending of a remote that is one file, such as ".jsonl.gz"; "" for data sets.
  std::string remote_ending() const;
  /// True if `chat_template` is the path of a file.
  bool has_template_file() const { return chat_template.ends_with(".jinja"); }
  /// Parses template_date. Returns nothing if it is empty or not a day.
  std::optional<std::chrono::year_month_day> template_day() const;

  template <class Visitor>
  void fields(Visitor& v) {
    v("path", path,
      "A JSONL or CSV file, also .gz or .zst, a Parquet or Arrow file, a folder of these, which are read "
      "sorted by path, or the folder of an MDS data set, or one that datasets saved.",
      required);
    v("split", split,
      "Of a folder whose file or folder names tell splits apart, as in train.jsonl and test.jsonl: which one "
      "to read. \"\": all files.");
    v("remote", remote,
      "Where the data is, if not in path, which is then its cache on this machine: a folder or a URL that "
      "begins with file://, https://, http://, s3:// or hf://, of an MDS data set; or the same of one "
      "file, with its ending, such as .jsonl or .parquet, in path too.");
    v("remote_hash", remote_hash,
      "Checksum of a file at remote, such as \"sha256:9f86d0...\": another file is refused.");
    v("bad_rows", bad_rows,
      "What happens to rows that cannot be used, such as invalid JSON or an empty response: an error, or "
      "skip, which leaves them out and counts them.");
    v("template", chat_template,
      "How the messages of a conversation become one text: chatml, llama3, tokenizer (the tokenizer's own), "
      "or the path of a .jinja file.");
    v("template_date", template_date,
      "The day that a template prints as today, such as \"2026-03-09\". Default: templates have no date.");
    v("target_responses", target_responses,
      "Which responses of a conversation to train on: the last one or all of them.");
    v("target_prompts", target_prompts, "Whether to train on prompts too.");
    v("min_target_prompt", min_target_prompt,
      "With target_prompts = \"all\", only prompts of at least this many tokens (LLM Foundry's length>=N).",
      at_least(0));
    v("eos_token_id", eos_token_id,
      "Token that ends every example. Default: taken from the tokenizer; with the template llama3, the token "
      "that ends a turn.",
      at_least(0));
    v("pack", pack,
      "Pack several whole examples into a row, with attention within each; otherwise one row per example.");
    v("packing_ratio", packing_ratio,
      "Pack batch by batch, as LLM Foundry does: this many examples for each row of a batch; auto: as many "
      "as leave nothing over. Default: all examples are packed once.",
      at_least(1));
    v("packing_groups", packing_groups,
      "With packing_ratio: number of equal parts of a global batch that are packed separately. LLM Foundry's "
      "number of GPUs gives its rows.",
      in_range(1, 1 << 20));
    v("max_leftover_rows", max_leftover_rows,
      "With packing_ratio: how many leftover rows of a batch, the fullest ones, are carried over into the "
      "next; examples in the others are lost. Default: all.",
      at_least(0));
    v("padding_side", padding_side, "The side on which rows are padded.");
    v("trim_padding", trim_padding,
      "Make each global batch only as wide as its longest row needs, in steps of 64 tokens (seq_len / 64 "
      "above 4,096). Default: every row has seq_len tokens.");
    v("bucket_batches", bucket_batches,
      "With trim_padding: sequence bucketing. The rows of this many successive global batches are sorted by "
      "length before they are divided into batches, which are then shuffled. 1: off.",
      in_range(1, 1 << 20));
    v("compat", compat,
      "composer: tokens are counted as Composer counts them, without padding: in max_duration and other "
      "lengths, in the schedule and in metrics; shuffled rows are visited in LLM Foundry's order. none: "
      "every "
      "row counts as seq_len tokens.");
    v("weights", weights,
      "Field of a JSONL line with the weight of the example in the loss: a number; a negative one marks its "
      "targets for a loss that reads z.weight. \"\": all weigh 1.");
    v("shuffle", shuffle,
      "Visit the rows of an epoch in a random order, fixed by shuffle_seed and the epoch; with packing_ratio "
      "the examples, before they are packed.");
    v("shuffle_seed", shuffle_seed, "Default: the recipe's seed.", at_least(0));
    v("prefetch", prefetch, "Batches prepared ahead by the loader's thread.", in_range(1, 1024));
  }
};

}  // namespace tycho
