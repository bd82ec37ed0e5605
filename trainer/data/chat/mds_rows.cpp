// One thread reads samples, a block at a time; several encode them.
#include "trainer/data/chat/mds_rows.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>

#include "trainer/data/chat/encode_lines.h"
#include "trainer/data/chat/row_columns.h"
#include "trainer/data/mds/mds_reader.h"
#include "trainer/data/remote/cached_file.h"
#include "trainer/data/remote/cached_index.h"
#include "trainer/data/remote/cached_source.h"

namespace tycho {
namespace {

constexpr int64_t kSamplesAtOnce = 8192;

/// All shards are fetched at the start, with the waits that MdsConfig has by default.
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

std::vector<ChatExample> encode_mds_rows(const ChatConfig& config, const ChatEncoder& encoder,
                                         int64_t vocab_size, const std::atomic<int>& stop,
                                         SkippedRows* skipped) {
  const MdsConfig mds = as_mds(config);
  MdsReader reader(read_mds_index(mds.dir()), source_of_rows(mds));
  const RowColumns columns(reader.index().shards[0].columns, config.path);
  std::vector<ChatExample> examples;
  const int64_t num_samples = reader.index().num_samples();
  for (int64_t first = 0; first < num_samples; first += kSamplesAtOnce) {
    std::vector<std::vector<RowCell>> rows;
    for (int64_t i = first; i < std::min(num_samples, first + kSamplesAtOnce) && stop == 0; ++i)
      rows.push_back(columns.cells(reader.read(i)));
    std::vector<ChatExample> made = encode_rows(
        rows.size(),
        [&](size_t i) {
          return columns.encode(rows[i], encoder, vocab_size,
                                reader.name_of(first + static_cast<int64_t>(i)));
        },
        config.path, stop, skipped);
    std::move(made.begin(), made.end(), std::back_inserter(examples));
  }
  return examples;
}

}  // namespace tycho
