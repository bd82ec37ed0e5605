// Source of the bytes of shards: the interface below the MDS reader for data that is not simply in a folder.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "trainer/data/mds/mds_index.h"
#include "trainer/data/mds/shard_memory.h"
#include "trainer/data/rows/batch.h"
#include "trainer/recipe/data.h"

namespace tycho {

/// Owned by one thread. Every Error has the code kUnusable and names the shard.
class ShardSource {
 public:
  virtual ~ShardSource() = default;
  /// Opens the raw bytes of a shard. Returns a descriptor for pread, which the caller closes.
  virtual int open(size_t shard) = 0;
  /// Compares an open shard with the index: size, number of samples and checksum, the first time and whenever
  /// its file has changed since. Called before each read of a sample.
  virtual void verify(size_t shard, int descriptor) = 0;
  /// Returns the raw bytes of a shard in memory, compared with the index, valid until the next call; nothing
  /// for a shard that must be opened. Called before each read of a sample of a shard that is not open.
  virtual std::optional<std::span<const char>> in_memory(size_t /*shard*/) { return std::nullopt; }
  /// Announces that samples of these shards will be read soon; one entry for each sample. Returns at once.
  virtual void prefetch(std::span<const size_t> /*shards*/) {}
  /// True if prefetch() does anything: shards are fetched or decompressed.
  virtual bool prefetches() const { return false; }
  /// Ends waits for shards, now and later, with an Error. From any thread.
  virtual void cancel() {}
  /// Counts of shards opened and fetched; zero for local data. From any thread.
  virtual FetchCounts fetch_counts() const { return {}; }
  /// Number of shards that a reader may keep open.
  virtual int max_open() const { return 256; }
};

/// Makes the source of the shards of an index, which must outlive it.
using MakeShardSource = std::function<std::unique_ptr<ShardSource>(const MdsIndex&)>;

/// kMayBeReplaced: the file of a shard may be replaced by an equal one while a run reads it, as in a cache.
enum class ShardFiles { kStay, kMayBeReplaced };

/// Destination of a compressed shard when it is read, or by other threads when it was announced: the file
/// MdsShard::path, which stays; or memory, one shard at a time.
enum class RawShards { kInFiles, kInMemory };

/// Makes a source for shards in the folder of the index, which must outlive the source. Files are not touched
/// before they are opened: a data set may have a million shards. kAlways: after as many reads as a shard has
/// samples, its checksum is compared again, which finds changes that leave the file's time and size
/// unchanged. `memory`: for compressed shards, as long as there is room; others are decompressed to files.
std::unique_ptr<ShardSource> make_local_source(const MdsIndex& index, VerifyShards verify,
                                               ShardFiles files = ShardFiles::kStay,
                                               RawShards raw = RawShards::kInFiles,
                                               std::shared_ptr<ShardMemory> memory = nullptr);

/// Returns make_local_source with these arguments as a MakeShardSource.
MakeShardSource local_source(VerifyShards verify, RawShards raw = RawShards::kInFiles,
                             std::shared_ptr<ShardMemory> memory = nullptr);

/// Compares a whole file with the index: size, number of samples (where it says one) and checksum. Throws
/// Error (kUnusable) naming shard.path. `when`: "" or " since this run first read it".
void check_shard(const MdsShard& shard, int descriptor, const char* when = "");

/// Reads all of [offset, offset + num_bytes). Throws Error if the file was cut short; there is no signal.
/// `place` names the file in messages.
void read_shard(int descriptor, int64_t offset, void* data, size_t num_bytes, const std::string& place);

}  // namespace tycho
