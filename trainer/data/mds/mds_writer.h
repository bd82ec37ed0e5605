// Writes MDS shards and their index.json, byte for byte as mosaicml-streaming's MDSWriter does.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/data/mds/mds_format.h"
#include "trainer/data/storage/compression.h"

namespace tycho {

struct MdsWriterOptions {
  std::vector<MdsColumn> columns;   // in any order: shards hold them sorted by name
  int64_t size_limit = 64 << 20;    // bytes of a shard; below 2^32
  std::vector<std::string> hashes;  // checksums of every file in index.json: names of shard_hash_names(),
                                    // sorted
  std::string compression;          // a name of parse_compression; "": none
};

/// Writes one split. Shards are durable once written; the split is complete when finish() has written
/// index.json, which comes last. Owned by one thread. Throws Error (kStorage) for failing writes.
class MdsWriter {
 public:
  /// `dir` must exist and hold no shards except those of a restored state.
  MdsWriter(FileOps& files, std::string dir, MdsWriterOptions options);

  /// Adds a sample: the encoded value of every column, sorted by column name (encode_mds_array and friends;
  /// bytes, str and json as they are).
  void write(const std::vector<std::string>& values);
  void finish();

  /// State from which a later writer with the same folder and options continues.
  struct State {
    Json shards = json_array();  // entries of index.json; their files are complete and durable
    std::vector<std::pair<std::string, std::string>>
        shard_hashes;                   // XXH3-128 of the raw bytes by the shard's name
    std::vector<uint32_t> sample_ends;  // end of each sample in data
    std::string data;                   // samples of the shard that is not full yet
    int64_t num_samples = 0;
  };
  const State& state() const { return state_; }
  void restore(State state) { state_ = std::move(state); }

  int64_t num_samples() const { return state_.num_samples; }
  int64_t num_shards() const { return static_cast<int64_t>(state_.shards.size()); }

 private:
  Json describe() const;
  void flush_shard();
  Json write_file(const std::string& basename, std::string_view bytes);
  Json file_entry(const std::string& basename, std::string_view bytes) const;

  FileOps& files_;
  std::string dir_;
  MdsWriterOptions options_;
  std::optional<Compression> compression_;
  std::vector<std::optional<int64_t>> column_sizes_;
  std::string config_;  // the JSON inside every shard
  State state_;
};

}  // namespace tycho
