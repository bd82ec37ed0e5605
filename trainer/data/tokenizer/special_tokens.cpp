// Searches well-known names if no tokenizer_config.json names the token that ends a text.
#include "trainer/data/tokenizer/special_tokens.h"

#include <fmt/format.h>

#include <initializer_list>

namespace tycho {
namespace {

std::string first_of(const Tokenizer& tokenizer, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const int32_t id = tokenizer.find(name); id >= 0 && tokenizer.is_special(id)) return name;
  return "";
}

}  // namespace

std::string find_eos_token(const Tokenizer& tokenizer) {
  if (!tokenizer.info().eos.empty()) return tokenizer.info().eos;
  return first_of(tokenizer, {"<|endoftext|>", "<|end_of_text|>", "</s>"});
}

std::string note_added_beside(const Tokenizer& tokenizer) {
  const std::vector<std::string>& added = tokenizer.info().added_beside;
  if (added.empty()) return "";
  return fmt::format(
      ". {} of them, such as \"{}\", {} only in {}, {} or {} beside it, and added as transformers does: "
      "if the model has no rows for them, take them out there",
      added.size(), added[0], added.size() == 1 ? "is" : "are", kTokenizerConfigFile, kSpecialTokensMapFile,
      kAddedTokensFile);
}

std::string find_bos_token(const Tokenizer& tokenizer) {
  if (!tokenizer.info().bos.empty()) return tokenizer.info().bos;
  return first_of(tokenizer, {"<|begin_of_text|>", "<s>", "<|endoftext|>"});
}

}  // namespace tycho
