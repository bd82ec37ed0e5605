// Remotes work as in MdsConfig; only the index is needed before rows are read.
#include "trainer/data/chat/mds_rows.h"

#include <filesystem>
#include <string>
#include <utility>

#include "trainer/data/mds/cached_file.h"
#include "trainer/data/mds/cached_index.h"
#include "trainer/data/mds/cached_source.h"
#include "trainer/data/mds/mds_index.h"
#include "trainer/recipe/data.h"

namespace tycho {
namespace {

/// Advice for full disks: all shards are fetched at the start, with the waits that MdsConfig has by default.
constexpr PartAdvice kRowsAdvice = {
    "free room on that disk, or choose another path",
    "path must be writable until every shard is there: choose another one, or copy the data set there"};

MdsConfig as_mds(const ChatConfig& config) {
  MdsConfig mds;
  mds.local_dir = config.path;
  mds.remote = config.remote;
  mds.split = "";
  return mds;
}

CacheSpec rows_spec(const MdsConfig& mds) {
  CacheSpec spec = cache_spec(mds);
  spec.advice = kRowsAdvice;
  spec.policy.when_full = kRowsAdvice.no_room;
  spec.policy.when_no_answer = "or copy the data set to path yourself and leave remote out";
  return spec;
}

MakeShardSource source_of_rows(const MdsConfig& mds) {
  if (mds.remote.empty()) return local_source(mds.verify, RawShards::kInMemory);
  return [mds](const MdsIndex& index) { return make_cached_source(index, mds.verify, rows_spec(mds)); };
}

}  // namespace

bool has_mds_rows(const ChatConfig& config) {
  std::error_code error;
  if (!config.remote.empty()) return !config.has_remote_file();
  return std::filesystem::exists(config.path + "/index.json", error);
}

void fetch_rows(const ChatConfig& config) {
  if (config.remote.empty()) return;
  if (config.has_remote_file()) return fetch_file(config.remote, config.path, {config.remote_hash});
  fetch_index_once(rows_spec(as_mds(config)));
}

std::optional<CacheSpec> rows_cache(const ChatConfig& config) {
  if (config.remote.empty() || config.has_remote_file()) return std::nullopt;
  return rows_spec(as_mds(config));
}

std::vector<uint32_t> mds_shard_rows(const ChatConfig& config) {
  return shard_sizes(read_mds_index(as_mds(config).dir()));
}

std::unique_ptr<RowTable> open_mds_rows(const ChatConfig& config) {
  const MdsConfig mds = as_mds(config);
  return open_mds_rows(read_mds_index(mds.dir()), source_of_rows(mds), config.path);
}

}  // namespace tycho
