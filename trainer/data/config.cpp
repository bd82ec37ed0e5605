// The rules between the keys of training data.
#include "trainer/data/config.h"

#include <utility>

#include "trainer/base/config_problems.h"

namespace tycho {
namespace {

void check_separators(const MdsConfig& data, const std::string& path, int64_t vocab_size,
                      ConfigProblems& problems) {
  if (data.eos_token_id && data.bos_token_id)
    problems.add(path + ".bos_token_id",
                 "cannot be combined with eos_token_id: documents either begin or end with a token; remove "
                 "one of them");
  for (const auto& [key, id] : {std::pair(".eos_token_id", data.eos_token_id),
                                {".bos_token_id", data.bos_token_id},
                                {".pad_token_id", data.pad_token_id}})
    if (id.value_or(0) >= vocab_size)
      problems.add(path + key, "{} is outside the model's vocabulary of {}", *id, vocab_size);
}

void check_chat(const ChatConfig& data, const std::string& path, int64_t vocab_size, bool has_tokenizer,
                ConfigProblems& problems) {
  if (data.path.empty()) problems.add(path + ".path", "is empty: write a .jsonl or a folder of them");
  if (data.min_target_prompt > 0 && data.target_prompts != TargetPrompts::kAll)
    problems.add(path + ".min_target_prompt", "has no effect unless target_prompts = \"all\"; remove it");
  if (data.eos_token_id.value_or(0) >= vocab_size)
    problems.add(path + ".eos_token_id", "{} is outside the model's vocabulary of {}", *data.eos_token_id,
                 vocab_size);
  if (!has_tokenizer)
    problems.add("tokenizer", "is missing, but {} is text: set tokenizer = \"PATH/tokenizer.json\"", path);
}

}  // namespace

std::string MdsConfig::rows_text() const {
  std::string text;
  if (eos_token_id) text += fmt::format("; attention ends at token {}", *eos_token_id);
  if (bos_token_id) text += fmt::format("; attention restarts at token {}", *bos_token_id);
  return text;
}

std::string ChatConfig::rows_text() const {
  return pack ? "; rows of several examples, attention stays within each" : "; rows of one example each";
}

void check(const DataConfig& data, const std::string& path, int64_t vocab_size, bool has_tokenizer,
           ConfigProblems& problems) {
  if (data.is<ChatConfig>())
    return check_chat(data.as<ChatConfig>(), path, vocab_size, has_tokenizer, problems);
  if (data.is<MdsConfig>()) check_separators(data.as<MdsConfig>(), path, vocab_size, problems);
}

void check_same_documents(const MdsConfig& train, const MdsConfig& eval, const std::string& path,
                          ConfigProblems& problems) {
  const auto same = [&](const char* key, std::optional<int64_t> wanted, std::optional<int64_t> given) {
    const auto text = [](std::optional<int64_t> id) { return id ? std::to_string(*id) : "nothing"; };
    if (wanted != given)
      problems.add(path + key,
                   "is {}, but train_data's is {}: their losses would not be comparable; use the same",
                   text(given), text(wanted));
  };
  same(".eos_token_id", train.eos_token_id, eval.eos_token_id);
  same(".bos_token_id", train.bos_token_id, eval.bos_token_id);
  same(".pad_token_id", train.pad_token_id, eval.pad_token_id);
}

}  // namespace tycho
