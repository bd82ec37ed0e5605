// tycho.json, which a conversion writes next to index.json: it records how the data was made, so that a run
// can detect a mismatch.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"

namespace tycho {

struct ConversionNote {
  std::string tokenizer_hash;  // "" when there is no note: the data was made elsewhere
  int64_t vocab_size = 0;
  std::string bos_text, eos_text;
  bool no_wrap = false;
  int64_t concat_tokens = 0, documents = 0, text_bytes = 0, tokens = 0, dropped_tokens = 0, samples = 0;
  // Empty in notes of older versions.
  std::vector<int32_t> text_begin, text_end;  // tokens that the tokenizer's own encoding put around every
                                              // document
  bool keep_newlines = false;
  std::map<std::string, std::string> shards;  // XXH3-128 of each shard by its name
};

void write_conversion_note(FileOps& files, const std::string& split_dir, const ConversionNote& note);

/// Reads the note. Returns an empty one if the split has none. Throws Error (kUnusable) naming file and field
/// when it is malformed.
ConversionNote read_conversion_note(const std::string& split_dir);

/// Throws Error (kUnusable) when the note names a tokenizer with another hash. `place` says in messages
/// where that one is.
void check_tokenizer(const std::string& split_dir, const std::string& tokenizer_hash,
                     const std::string& place);

}  // namespace tycho
