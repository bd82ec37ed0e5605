// Shards in a local folder. They are read with pread, never mapped: a cut file is an Error, not a SIGBUS.
#include "trainer/data/mds/shard_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/data/mds/compressed_shard.h"
#include "trainer/data/mds/shard_hash.h"
#include "trainer/data/mds/shard_prefetch.h"

namespace tycho {
namespace {

constexpr size_t kHashPiece = 4 << 20;
constexpr int kDecompressThreads = 4;

/// What tells that a file was written to or replaced.
struct Identity {
  uint64_t device = 0, inode = 0;
  int64_t num_bytes = 0, modified_s = 0, modified_ns = 0;
  bool operator==(const Identity&) const = default;
};

Identity identity_of(int descriptor, const std::string& path) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0)
    fail(ExitCode::kUnusable, "[mds] cannot read shard {}: {}", path, std::strerror(errno));
  return {info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

void check_num_samples(const MdsShard& shard, int descriptor) {
  uint32_t samples = 0;
  read_shard(descriptor, 0, &samples, sizeof samples, shard.path);
  if (samples != shard.samples)
    fail(ExitCode::kUnusable, "[mds] {} claims {} samples, index.json {}; copy the shard again", shard.path,
         samples, shard.samples);
}

/// `when`: "" or " since this run first read it".
void check_hash(const MdsShard& shard, int descriptor, const char* when) {
  if (shard.hash.empty()) return;
  ShardHasher hasher(shard.hash_name);
  std::string piece(std::min(kHashPiece, static_cast<size_t>(shard.bytes)), '\0');
  for (int64_t at = 0; at < shard.bytes; at += static_cast<int64_t>(piece.size())) {
    piece.resize(std::min(piece.size(), static_cast<size_t>(shard.bytes - at)));
    read_shard(descriptor, at, piece.data(), piece.size(), shard.path);
    hasher.update(piece.data(), piece.size());
  }
  if (const std::string hash = hasher.hex(); hash != shard.hash)
    fail(ExitCode::kUnusable,
         "[mds] {} is damaged{}: its checksum is {}, index.json says {}; {} or convert the data again",
         shard.path, when, hash, shard.hash,
         shard.zip ? "delete it, so that it is decompressed again," : "copy the shard again");
}

class LocalSource final : public ShardSource {
 public:
  LocalSource(const MdsIndex& index, VerifyShards verify, ShardFiles files, RawShards raw)
      : index_(index),
        raw_(raw),
        always_(verify == VerifyShards::kAlways),
        files_stay_(files == ShardFiles::kStay),
        verified_(index.shards.size()),
        prefetch_(kDecompressThreads, [this](size_t shard, const std::stop_token& stop, const MayEvict&) {
          if (index_.shards[shard].zip) decompress_shard(index_.shards[shard], stop);
        }) {
    if (always_) num_reads_.resize(index.shards.size());
    has_zips_ = raw_ == RawShards::kInFiles &&
                std::any_of(index.shards.begin(), index.shards.end(),
                            [](const MdsShard& shard) { return shard.zip.has_value(); });
  }

  int open(size_t index) override {
    const MdsShard& shard = index_.shards[index];
    const std::string& path = shard.path;
    if (shard.zip) {
      if (raw_ == RawShards::kInMemory) return open_in_memory(shard);
      if (!std::exchange(swept_, true)) sweep_left_overs(index_, shard);
      decompress_shard(shard, stop_.get_token());
    }
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
      fail(ExitCode::kUnusable, "[mds] cannot read shard {}: {}", path, std::strerror(errno));
    return descriptor;
  }

  void verify(size_t index, int descriptor) override {
    const MdsShard& shard = index_.shards[index];
    if (has_zips_) prefetch_.was_read(index);
    std::optional<Identity>& verified = verified_[index];
    const Identity now = identity_of(descriptor, shard.path);
    if (verified == now && !is_due_again(index)) return;
    if (files_stay_ && verified && now.num_bytes == shard.bytes && verified != now && shard.hash.empty())
      fail(ExitCode::kUnusable,
           "[mds] {} was written to while this run reads it, and no checksum tells whether it is the same; "
           "start the run again when the data is complete",
           shard.path);
    check_shard(shard, descriptor, verified ? " since this run first read it" : "");
    verified = now;  // of before: what is written meanwhile is noticed at the next read
  }

  void prefetch(std::span<const size_t> shards) override {
    if (has_zips_) prefetch_.announce(shards);
  }
  bool prefetches() const override { return has_zips_; }

  void cancel() override {
    stop_.request_stop();
    prefetch_.stop();
  }

  // Each open shard is in memory as a whole.
  int max_open() const override { return raw_ == RawShards::kInMemory ? 1 : ShardSource::max_open(); }

 private:
  /// Counts a read.
  bool is_due_again(size_t index) {
    if (!always_ || ++num_reads_[index] < index_.shards[index].samples) return false;
    num_reads_[index] = 0;
    return true;
  }

  const MdsIndex& index_;
  RawShards raw_;
  bool always_, files_stay_;
  bool has_zips_ = false;  // shards to be decompressed to files
  bool swept_ = false;
  std::vector<int64_t> num_reads_;                 // of samples since the checksum was compared, by shard
  std::vector<std::optional<Identity>> verified_;  // the file that was compared, by shard
  std::stop_source stop_;
  ShardPrefetch prefetch_;  // last: its threads use the rest
};

}  // namespace

std::unique_ptr<ShardSource> make_local_source(const MdsIndex& index, VerifyShards verify, ShardFiles files,
                                               RawShards raw) {
  return std::make_unique<LocalSource>(index, verify, files, raw);
}

MakeShardSource local_source(VerifyShards verify, RawShards raw) {
  return [=](const MdsIndex& index) { return make_local_source(index, verify, ShardFiles::kStay, raw); };
}

void check_shard(const MdsShard& shard, int descriptor, const char* when) {
  const int64_t num_bytes = identity_of(descriptor, shard.path).num_bytes;
  if (num_bytes != shard.bytes)
    fail(ExitCode::kUnusable, "[mds] {} has {} bytes{}, index.json says {}; copy the shard again", shard.path,
         num_bytes, *when == '\0' ? "" : " now", shard.bytes);
  if (!shard.lines) check_num_samples(shard, descriptor);
  check_hash(shard, descriptor, when);
}

void read_shard(int descriptor, int64_t offset, void* data, size_t num_bytes, const std::string& place) {
  auto* bytes = static_cast<char*>(data);
  while (num_bytes > 0) {
    const ssize_t n = ::pread(descriptor, bytes, num_bytes, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ExitCode::kUnusable, "[mds] cannot read {}: {}", place, std::strerror(errno));
    if (n == 0)
      fail(ExitCode::kUnusable, "[mds] {}: the file ends at byte {}; copy the shard again", place, offset);
    bytes += n, offset += n, num_bytes -= static_cast<size_t>(n);
  }
}

}  // namespace tycho
