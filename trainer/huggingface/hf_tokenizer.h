// Files about tokens in an export: tokenizer files, generation_config.json, and ids for config.json.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

inline constexpr char kGenerationConfig[] = "generation_config.json";

struct HfTokenizerFiles {
  std::map<std::string, std::string> files;  // name -> text
  Json token_ids;                            // bos_token_id, eos_token_id, pad_token_id: for config.json
};

/// Returns the files that the checkpoint kept, and, for a tokenizer.json alone, the further ones that
/// transformers needs. `kept_config` is the config.json of the import, or {}.
HfTokenizerFiles tokenizer_files(const CheckpointReader& checkpoint, const Json& kept_config);

/// Returns the tokens that end a text by eos_token_id of a generation_config.json: none, one or several.
std::vector<int32_t> end_of_text_ids(const std::string& generation_config, const std::string& place);

/// Adds a recipe's tokenizer, and the files beside it, to the files that a checkpoint keeps. Removes what the
/// weights' folder has of another tokenizer: its files, its template, and its token ids.
void keep_tokenizer(const std::string& tokenizer, const TokenizerFilesBeside& beside,
                    std::map<std::string, std::string>& files);

/// Returns the message that a tokenizer has ids outside a model's vocabulary of `vocab_size` tokens.
std::string too_many_tokens(const std::string& place, int64_t num_tokens, int64_t vocab_size);

}  // namespace tycho
