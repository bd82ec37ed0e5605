// Shards in a local folder. They are read with pread, never mapped: a cut file is an Error, not a SIGBUS.
#include "trainer/data/mds/shard_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"

namespace tycho {
namespace {

constexpr size_t kHashPiece = 4 << 20;

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
  if (shard.xxh3_128.empty()) return;
  Hasher hasher;
  std::string piece(std::min(kHashPiece, static_cast<size_t>(shard.bytes)), '\0');
  for (int64_t at = 0; at < shard.bytes; at += static_cast<int64_t>(piece.size())) {
    piece.resize(std::min(piece.size(), static_cast<size_t>(shard.bytes - at)));
    read_shard(descriptor, at, piece.data(), piece.size(), shard.path);
    hasher.update(piece.data(), piece.size());
  }
  if (hasher.hex() != shard.xxh3_128)
    fail(ExitCode::kUnusable,
         "[mds] {} is damaged{}: its checksum is {}, index.json says {}; copy the shard again or convert the "
         "data again",
         shard.path, when, hasher.hex(), shard.xxh3_128);
}

class LocalSource final : public ShardSource {
 public:
  LocalSource(const MdsIndex& index, VerifyShards verify)
      : index_(index), always_(verify == VerifyShards::kAlways), verified_(index.shards.size()) {
    if (always_) num_reads_.resize(index.shards.size());
  }

  int open(size_t index) override {
    const std::string& path = index_.shards[index].path;
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
      fail(ExitCode::kUnusable, "[mds] cannot read shard {}: {}", path, std::strerror(errno));
    return descriptor;
  }

  void verify(size_t index, int descriptor) override {
    const MdsShard& shard = index_.shards[index];
    std::optional<Identity>& verified = verified_[index];
    const Identity now = identity_of(descriptor, shard.path);
    if (verified == now && !is_due_again(index)) return;
    if (now.num_bytes != shard.bytes)
      fail(ExitCode::kUnusable, "[mds] {} has {} bytes{}, index.json says {}; copy the shard again",
           shard.path, now.num_bytes, verified ? " now" : "", shard.bytes);
    if (verified && verified != now && shard.xxh3_128.empty())
      fail(ExitCode::kUnusable,
           "[mds] {} was written to while this run reads it, and no checksum tells whether it is the same; "
           "start the run again when the data is complete",
           shard.path);
    check_num_samples(shard, descriptor);
    check_hash(shard, descriptor, verified ? " since this run first read it" : "");
    verified = now;  // of before: what is written meanwhile is noticed at the next read
  }

 private:
  /// Counts a read.
  bool is_due_again(size_t index) {
    if (!always_ || ++num_reads_[index] < index_.shards[index].samples) return false;
    num_reads_[index] = 0;
    return true;
  }

  const MdsIndex& index_;
  bool always_;
  std::vector<int64_t> num_reads_;                 // of samples since the checksum was compared, by shard
  std::vector<std::optional<Identity>> verified_;  // the file that was compared, by shard
};

}  // namespace

std::unique_ptr<ShardSource> make_local_source(const MdsIndex& index, VerifyShards verify) {
  return std::make_unique<LocalSource>(index, verify);
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
