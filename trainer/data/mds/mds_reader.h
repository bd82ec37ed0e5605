// Samples of MDS data sets, and of those of mosaicml-streaming's other formats, by number.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/mds/mds_index.h"
#include "trainer/data/mds/shard_source.h"
#include "trainer/data/rows/batch.h"
#include "trainer/recipe/data.h"

namespace tycho {

/// Random access to samples. Owned by one thread. Every Error has the code kUnusable and names shard and
/// sample.
class MdsReader {
 public:
  /// Opens no shard yet. With kInMemory, one compressed shard at a time is in memory, which suits reading in
  /// order.
  explicit MdsReader(MdsIndex index, VerifyShards verify = VerifyShards::kOnce,
                     RawShards raw = RawShards::kInFiles);
  MdsReader(MdsIndex index, const MakeShardSource& make_source);
  MdsReader(std::shared_ptr<const MdsIndex> index, const MakeShardSource& make_source);
  ~MdsReader();
  MdsReader(const MdsReader&) = delete;

  const MdsIndex& index() const { return *index_; }

  /// Returns the values of one sample, in column order, valid until the next call. Shards of text should be
  /// read in order: only the offsets of one shard are in memory. A shard is compared with the index when it
  /// is first read, when its file has changed since, and as `verify` says.
  const std::vector<std::string_view>& read(int64_t sample);

  /// Announces that these samples will be read soon. Returns at once.
  void prefetch(std::span<const uint32_t> samples);
  /// True if prefetch() does anything.
  bool prefetches() const { return source_->prefetches(); }
  FetchCounts fetch_counts() const { return source_->fetch_counts(); }
  /// Ends waits for shards, now and later, with an Error. From any thread.
  void cancel() { source_->cancel(); }

  /// Name of a sample for messages: "sample 17 of /data/train/shard.00003.mds".
  std::string name_of(int64_t sample) const;

  /// A shard in memory, or the descriptor of its file.
  struct RawBytes {
    std::optional<std::span<const char>> memory;
    int descriptor = -1;
  };

  /// Returns the position of a column in the result of read(). Throws Error (kUnusable) that lists the
  /// columns.
  size_t column(std::string_view name) const;

 private:
  size_t shard_of(int64_t sample) const;
  RawBytes raw_bytes(size_t shard);
  int open_shard(size_t shard);
  void read_offsets(size_t shard);
  void split_sample(const MdsShard& shard, int64_t sample, std::string_view data);

  std::shared_ptr<const MdsIndex> index_;
  MdsIndex files_;  // also has the files of offsets; empty where there are none
  std::unique_ptr<ShardSource> source_;
  std::vector<int> descriptors_;  // by file; -1: closed
  int num_open_ = 0;
  std::string data_;
  std::vector<uint32_t> offsets_;   // offsets of the samples of a shard of text
  size_t offsets_of_ = SIZE_MAX;    // shard whose offsets are in offsets_
  std::vector<std::string> parts_;  // values of a line
  std::vector<std::string_view> values_;
};

}  // namespace tycho
