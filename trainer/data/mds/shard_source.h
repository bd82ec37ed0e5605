// Where the bytes of shards are: the seam below the MDS reader for data that is not simply in a folder.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "trainer/data/batch.h"
#include "trainer/data/config.h"
#include "trainer/data/mds/mds_index.h"
#include "trainer/data/mds/shard_memory.h"

namespace tycho {

/// Owned by one thread. Every Error has the code kUnusable and names the shard.
class ShardSource {
 public:
  virtual ~ShardSource() = default;
  /// A descriptor of the raw bytes of a shard, for pread; the caller closes it.
  virtual int open(size_t shard) = 0;
  /// Compares an open shard with the index: size, number of samples and checksum, the first time and whenever
  /// its file has changed since. Called before each read of a sample.
  virtual void verify(size_t shard, int descriptor) = 0;
  /// The raw bytes of a shard that is in memory, compared with the index, valid until the next call; nothing
  /// for one that is to be opened. Called before each read of a sample of a shard that is not open.
  virtual std::optional<std::span<const char>> in_memory(size_t /*shard*/) { return std::nullopt; }
  /// Samples of these shards will be read soon: one entry for each sample. Returns at once.
  virtual void prefetch(std::span<const size_t> /*shards*/) {}
  /// Whether prefetch() does something: shards are fetched or decompressed.
  virtual bool prefetches() const { return false; }
  /// Ends waits for shards, now and later, with an Error. From any thread.
  virtual void cancel() {}
  /// Of shards that are fetched. From any thread.
  virtual FetchCounts fetch_counts() const { return {}; }
  /// How many shards a reader may keep open.
  virtual int max_open() const { return 256; }
};

/// The source of the shards of an index, which outlives it.
using MakeShardSource = std::function<std::unique_ptr<ShardSource>(const MdsIndex&)>;

/// Whether the file of a shard may be replaced by an equal one while a run reads it, as in a cache.
enum class ShardFiles { kStay, kMayBeReplaced };

/// Where a compressed shard is decompressed to when it is read, or by other threads when it was announced:
/// into MdsShard::path, where it stays; or into memory, one at a time.
enum class RawShards { kInFiles, kInMemory };

/// Shards that lie in the folder of the index, which outlives the source. Nothing is looked at before it is
/// opened: a data set may have a million shards. kAlways: after as many reads as a shard has samples its
/// checksum is compared again, which finds what changed without a trace in the file's time and size.
/// `memory`: for compressed shards, as far as there is room; the others go into files.
std::unique_ptr<ShardSource> make_local_source(const MdsIndex& index, VerifyShards verify,
                                               ShardFiles files = ShardFiles::kStay,
                                               RawShards raw = RawShards::kInFiles,
                                               std::shared_ptr<ShardMemory> memory = nullptr);

/// The same as a MakeShardSource.
MakeShardSource local_source(VerifyShards verify, RawShards raw = RawShards::kInFiles,
                             std::shared_ptr<ShardMemory> memory = nullptr);

/// Compares a whole file with the index: size, number of samples (where it says one) and checksum. Throws
/// Error (kUnusable) naming shard.path. `when`: "" or " since this run first read it".
void check_shard(const MdsShard& shard, int descriptor, const char* when = "");

/// Reads all of [offset, offset + num_bytes). A file that is cut short meanwhile is an Error, never a signal.
/// `place`: the file, for messages.
void read_shard(int descriptor, int64_t offset, void* data, size_t num_bytes, const std::string& place);

}  // namespace tycho
