// index.json and tycho.json of a remote data set, fetched to its cache and compared with the copies there.
#pragma once
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "trainer/data/storage/download.h"
#include "trainer/data/storage/part_file.h"
#include "trainer/recipe/data.h"

namespace tycho {

/// A remote data set and its cache, for one split of one stream.
struct CacheSpec {
  std::string remote, dir;  // both include the split
  std::string sas_env;
  DownloadPolicy policy;
  PartAdvice advice = kCacheAdvice;
  std::optional<int64_t> limit_bytes;  // limit of the shards in `dir`
  bool keep_zip = false;               // keep compressed files next to the decompressed ones
};

/// Returns the cache of `stream`, an element of MdsConfig::each_stream() with a remote.
CacheSpec cache_spec(const MdsConfig& stream);

/// Subfolder of a cache for files that do not belong to the data set: partial downloads and damaged shards.
std::string work_folder(const std::string& cache_dir);

/// Fetches index.json and tycho.json, and writes those that the cache does not have yet. Several processes
/// may do so at once. Throws Error: as download() and PartFile do; kUnusable when the cache has other files
/// than the remote, naming both.
void fetch_index(const CacheSpec& spec, const std::stop_token& stop = {});

/// Calls fetch_index once per process.
void fetch_index_once(const CacheSpec& spec);
/// Calls fetch_index_once for all remote data of a config. Does nothing for local data.
void fetch_indexes(const DataConfig& data);
/// Calls check_tokenizer for each stream of MDS data; other data records no tokenizer. Throws as
/// fetch_indexes does.
void check_made_with(const DataConfig& data, const std::string& tokenizer_hash, const std::string& place);

}  // namespace tycho
