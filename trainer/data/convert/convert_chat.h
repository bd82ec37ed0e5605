// From JSONL and Parquet of conversations, and of prompts with responses, to MDS: what LLM Foundry's
// convert_finetuning_dataset.py writes and t.data.chat reads.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/data/bad_rows.h"
#include "trainer/data/convert/convert.h"
#include "trainer/data/convert/split_writer.h"

namespace tycho {

struct ConvertChatOptions {
  std::vector<std::string> inputs;  // JSONL files, also .gz and .zst, Parquet files, and folders of them
  SplitRules splits;
  std::string tokenizer;                 // path of a tokenizer.json; "": texts are written, not tokens
  std::string chat_template = "chatml";  // as ChatConfig::chat_template; with a tokenizer
  std::string template_date;
  BadRows bad_rows = BadRows::kError;
  int threads = 0;           // 0: one per core
  double save_every_s = 10;  // as ConvertOptions::save_every_s
  /// Called by the caller's thread, at most ten times a second.
  std::function<void(const ConvertProgress&)> progress;
};

/// Every line that is not blank, and every row of Parquet, is a sample, in its order. Without a tokenizer
/// conversations become the column "messages" (json), prompts with responses "prompt" and "response" (str);
/// the first line says which of both all lines are. With one both become "turns" (json): the tokens of each
/// prompt and response, as runs would make them, without the end of the text, which readers add. The bytes do
/// not depend on `threads`. Splits appear when they are complete. After a kill the next call continues, as
/// convert_text does, and rows that cannot be used are skipped if `bad_rows` says so. Errors: as
/// convert_text, and as parse_chat_row and ChatTemplate::turns naming file and line.
ConvertResult convert_chat(const ConvertChatOptions& options, FileOps& files = real_files());

}  // namespace tycho
