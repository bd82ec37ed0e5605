// Configuration of training data.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "trainer/base/fields.h"

namespace tycho {

enum class VerifyShards { kOnce, kAlways };
constexpr EnumNames<VerifyShards, 2> enum_names(VerifyShards) {
  return {{{"once", VerifyShards::kOnce}, {"always", VerifyShards::kAlways}}};
}

/// MDS shards of tokens, as LLM Foundry's and mosaicml-streaming's writers make them.
struct MdsConfig {
  static constexpr const char* kKind = "mds";
  static constexpr const char* kHelp = "MDS shards of token sequences.";
  std::string local_dir;
  std::string split = "train";
  bool shuffle = true;
  std::optional<int64_t> shuffle_seed;
  std::optional<int64_t> eos_token_id;
  std::optional<int64_t> bos_token_id;
  std::optional<int64_t> pad_token_id;
  std::optional<int64_t> epoch_size;
  int64_t prefetch = 4;
  VerifyShards verify = VerifyShards::kOnce;

  /// Whether attention stays within the documents that a row of tokens is packed from.
  bool separates_documents() const { return eos_token_id || bos_token_id; }
  /// The folder that holds index.json.
  std::string dir() const { return split.empty() ? local_dir : local_dir + "/" + split; }
  /// What messages call it.
  std::string place() const { return dir(); }
  /// What `tycho plan` says of its rows; "" for nothing.
  std::string rows_text() const;

  template <class Visitor>
  void fields(Visitor& v) {
    v("local_dir", local_dir, "Folder of the data set; each split is a folder in it.", required);
    v("split", split, "Folder inside local_dir that holds index.json; \"\" for local_dir itself.");
    v("shuffle", shuffle,
      "Visit the samples of an epoch in a random order, fixed by shuffle_seed and the epoch.");
    v("shuffle_seed", shuffle_seed, "Default: the recipe's seed.", at_least(0));
    v("eos_token_id", eos_token_id,
      "Documents end with this token, and attention stays within documents. Default: attention spans the "
      "whole row.",
      at_least(0));
    v("bos_token_id", bos_token_id, "The same for documents that begin with this token.", at_least(0));
    v("pad_token_id", pad_token_id,
      "Do not train on this token: positions that should predict it are not in the loss. Default: train on "
      "all tokens.",
      at_least(0));
    v("epoch_size", epoch_size,
      "Samples per epoch: the first ones in its order, which starts again at the end of the data. Default: "
      "all.",
      positive);
    v("prefetch", prefetch, "Batches prepared ahead by the loader's thread.", in_range(1, 1024));
    v("verify", verify,
      "When a shard is compared with its checksum: when the run first reads it and when its file changes, or "
      "also again each time as many samples were read as it has.");
  }
};

enum class ChatTemplate { kChatml, kLlama3 };
constexpr EnumNames<ChatTemplate, 2> enum_names(ChatTemplate) {
  return {{{"chatml", ChatTemplate::kChatml}, {"llama3", ChatTemplate::kLlama3}}};
}

enum class TargetResponses { kLast, kAll };
constexpr EnumNames<TargetResponses, 2> enum_names(TargetResponses) {
  return {{{"last", TargetResponses::kLast}, {"all", TargetResponses::kAll}}};
}

enum class TargetPrompts { kNone, kAll };
constexpr EnumNames<TargetPrompts, 2> enum_names(TargetPrompts) {
  return {{{"none", TargetPrompts::kNone}, {"all", TargetPrompts::kAll}}};
}

/// Conversations, and prompts with responses, as JSONL: what LLM Foundry calls finetuning.
struct ChatConfig {
  static constexpr const char* kKind = "chat";
  static constexpr const char* kHelp = "Conversations, and prompts with responses, as JSONL.";
  std::string path;
  ChatTemplate chat_template = ChatTemplate::kChatml;
  TargetResponses target_responses = TargetResponses::kLast;
  TargetPrompts target_prompts = TargetPrompts::kNone;
  int64_t min_target_prompt = 0;
  std::optional<int64_t> eos_token_id;
  bool pack = false;
  bool shuffle = true;
  std::optional<int64_t> shuffle_seed;
  int64_t prefetch = 4;

  /// What messages call it.
  std::string place() const { return path; }
  /// What `tycho plan` says of its rows.
  std::string rows_text() const;

  template <class Visitor>
  void fields(Visitor& v) {
    v("path", path, "A .jsonl file, or a folder whose .jsonl files are read, sorted by path.", required);
    v("template", chat_template, "How the messages of a conversation become one text.");
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
    v("shuffle", shuffle,
      "Visit the rows of an epoch in a random order, fixed by shuffle_seed and the epoch.");
    v("shuffle_seed", shuffle_seed, "Default: the recipe's seed.", at_least(0));
    v("prefetch", prefetch, "Batches prepared ahead by the loader's thread.", in_range(1, 1024));
  }
};

class ConfigProblems;

struct DataConfig : OneOf<MdsConfig, ChatConfig> {
  static constexpr const char* kNamespace = "data";
  /// What messages call it.
  std::string place() const {
    return std::visit([](const auto& data) { return data.place(); }, value);
  }
};

/// Reports what is wrong with the data at `path` ("train_data") for a model of `vocab_size` tokens.
void check(const DataConfig& data, const std::string& path, int64_t vocab_size, bool has_tokenizer,
           ConfigProblems& problems);
/// Reports where evaluation at `path` would see other parts of a row than training does.
void check_same_documents(const MdsConfig& train, const MdsConfig& eval, const std::string& path,
                          ConfigProblems& problems);

}  // namespace tycho
