// Converts JSONL and Parquet of conversations, and of prompts with responses, to MDS. LLM Foundry's
// convert_finetuning_dataset.py writes this format, and t.data.chat reads it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/data/prepare/convert.h"
#include "trainer/data/prepare/split_writer.h"
#include "trainer/recipe/bad_rows.h"

namespace tycho {

struct ConvertChatOptions {
  std::vector<std::string> inputs;  // JSONL files, also .gz and .zst, Parquet files, and folders of them
  SplitRules splits;
  std::string tokenizer;                 // path of a tokenizer.json; "": write texts, not tokens
  std::string configuration;             // of inputs with several; "": their default
  bool keeps_fetched = false;            // keep files of the hub in its cache; else they pass through out_dir
  std::string chat_template = "chatml";  // see ChatConfig::chat_template; used with a tokenizer
  std::string template_date;
  BadRows bad_rows = BadRows::kError;
  int threads = 0;           // 0: one per core
  double save_every_s = 10;  // see ConvertOptions::save_every_s
  /// Called by the caller's thread, at most ten times a second.
  std::function<void(const ConvertProgress&)> progress;
};

/// Turns every line that is not blank, and every row of Parquet, into a sample, in order. Without a
/// tokenizer, conversations become the column "messages" (json), and prompts with responses become "prompt"
/// and "response" (str); the first line determines which of the two all lines must be. With a tokenizer both
/// become "turns" (json): the tokens of each prompt and response, as runs would make them, without the end of
/// the text, which readers add. The bytes do not depend on `threads`. Splits get their final names when they
/// are complete. After a kill the next call continues, as convert_text does; rows that cannot be used are
/// skipped if `bad_rows` says so. Throws as convert_text does, and as parse_chat_row and ChatTemplate::turns
/// naming file and line.
ConvertResult convert_chat(const ConvertChatOptions& options, FileOps& files = real_files());

}  // namespace tycho
