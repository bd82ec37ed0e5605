// Finetuning data as MDS, as LLM Foundry's converters write it: texts or tokens.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/data/chat/row_table.h"
#include "trainer/data/mds/cached_index.h"
#include "trainer/recipe/chat_data.h"

namespace tycho {

/// True if the rows are MDS: they have a remote that is not one file, or index.json is in the folder.
bool has_mds_rows(const ChatConfig& config);
/// Fetches a remote file to its path, or index.json to its cache. Does nothing for local data. Throws Error
/// as fetch_file and fetch_index do.
void fetch_rows(const ChatConfig& config);

/// Returns the cache of rows that are MDS and have a remote; nothing for others.
std::optional<CacheSpec> rows_cache(const ChatConfig& config);

/// Returns the number of rows of each shard. Requires has_mds_rows, and that the index is there.
std::vector<uint32_t> mds_shard_rows(const ChatConfig& config);

/// Opens the rows of all samples, in order. Columns, besides which others may exist: "messages" (json);
/// "prompt" and "response" or "completion" (str); "turns" (json: [{"input_ids", "labels"}, …], the tokens of
/// prompts and responses); or "input_ids" and "labels" (arrays, or bytes of int64). Throws as RowTable, and
/// as downloads do.
std::unique_ptr<RowTable> open_mds_rows(const ChatConfig& config);

}  // namespace tycho
