// Finetuning data as MDS, as LLM Foundry's converters write it: texts, or tokens that are made already.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/data/chat/chat_example.h"
#include "trainer/data/chat_config.h"
#include "trainer/data/remote/cached_index.h"
#include "trainer/data/skipped_rows.h"

namespace tycho {

/// Whether the rows are MDS: they have a remote that is not one file, or index.json lies in the folder.
bool has_mds_rows(const ChatConfig& config);
/// Brings a file of a remote to its path, or index.json to its cache; nothing for local data. Throws Error
/// as fetch_file and fetch_index do.
void fetch_rows(const ChatConfig& config);

/// The cache of rows that are MDS and have a remote; nothing for others.
std::optional<CacheSpec> rows_cache(const ChatConfig& config);

/// The examples of all samples, in order. Columns, of which others may stand beside them: "messages" (json);
/// "prompt" and "response" or "completion" (str); "turns" (json: [{"input_ids", "labels"}, …], the tokens of
/// prompts and responses); or "input_ids" and "labels" (arrays, or bytes of int64). Throws Error (kUnusable)
/// that names shard and sample for rows that are wrong and tokens outside [0, vocab_size), which `skipped`
/// counts instead; as encode_lines when it is stopped, and as downloads do.
std::vector<ChatExample> encode_mds_rows(const ChatConfig& config, const ChatEncoder& encoder,
                                         int64_t vocab_size, const std::atomic<int>& stop,
                                         SkippedRows* skipped = nullptr);

}  // namespace tycho
