// Shards in a local folder. They are read with pread, never mapped: a cut file is an Error, not a SIGBUS.
#include "trainer/data/mds/shard_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"

namespace tycho {
namespace {

constexpr size_t kHashPiece = 4 << 20;

void check_size(const MdsShard& shard, int descriptor) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0)
    fail(ExitCode::kUnusable, "[mds] cannot read shard {}: {}", shard.path, std::strerror(errno));
  if (info.st_size != shard.bytes)
    fail(ExitCode::kUnusable, "[mds] {} has {} bytes, index.json says {}; copy the shard again", shard.path,
         static_cast<int64_t>(info.st_size), shard.bytes);
  uint32_t samples = 0;
  read_shard(descriptor, 0, &samples, sizeof samples, shard.path);
  if (samples != shard.samples)
    fail(ExitCode::kUnusable, "[mds] {} claims {} samples, index.json {}; copy the shard again", shard.path,
         samples, shard.samples);
}

void check_hash(const MdsShard& shard, int descriptor) {
  if (shard.xxh3_128.empty()) return;
  Hasher hasher;
  std::string piece(std::min(kHashPiece, static_cast<size_t>(shard.bytes)), '\0');
  for (int64_t at = 0; at < shard.bytes; at += static_cast<int64_t>(piece.size())) {
    piece.resize(std::min(piece.size(), static_cast<size_t>(shard.bytes - at)));
    read_shard(descriptor, at, piece.data(), piece.size(), shard.path);
    hasher.update(piece.data(), piece.size());
  }
  if (hasher.hex() != shard.xxh3_128) {
    fail(ExitCode::kUnusable,
         "[mds] {} is damaged: its checksum is {}, index.json says {}; copy the shard again or convert the "
         "data again",
         shard.path, hasher.hex(), shard.xxh3_128);
  }
}

class LocalSource final : public ShardSource {
 public:
  explicit LocalSource(const MdsIndex& index) : index_(index), verified_(index.shards.size()) {}

  int open(size_t index) override {
    const MdsShard& shard = index_.shards[index];
    const int descriptor = ::open(shard.path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
      fail(ExitCode::kUnusable, "[mds] cannot read shard {}: {}", shard.path, std::strerror(errno));
    try {
      if (!verified_[index]) {
        check_size(shard, descriptor);
        check_hash(shard, descriptor);
      }
    } catch (...) {
      ::close(descriptor);
      throw;
    }
    verified_[index] = true;
    return descriptor;
  }

 private:
  const MdsIndex& index_;
  std::vector<bool> verified_;
};

}  // namespace

std::unique_ptr<ShardSource> make_local_source(const MdsIndex& index) {
  return std::make_unique<LocalSource>(index);
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
