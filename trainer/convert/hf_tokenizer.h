// What an export says about tokens: tokenizer files, generation_config.json, and ids for config.json.
#pragma once
#include <map>
#include <string>

#include "trainer/base/json.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {

struct HfTokenizerFiles {
  std::map<std::string, std::string> files;  // name -> text
  Json token_ids;                            // bos_token_id, eos_token_id, pad_token_id: for config.json
};

/// The files that the checkpoint kept, and for a tokenizer.json alone those that transformers wants beside
/// it. `kept_config` is the config.json of the import, or {}.
HfTokenizerFiles tokenizer_files(const CheckpointReader& checkpoint, const Json& kept_config);

}  // namespace tycho
