// mosaicml-streaming decompresses a whole shard to a file too: samples are read in any order.
#include "trainer/data/mds/compressed_shard.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/data/compression/decompress.h"
#include "trainer/data/mds/shard_hash.h"
#include "trainer/data/mds/shard_source.h"

namespace tycho {
namespace {

constexpr size_t kHashPieceBytes = 1 << 20;

bool is_older(const struct stat& file, const struct stat& other) {
  const auto time = [](const struct stat& info) {
    return std::pair(info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  };
  return time(file) < time(other);
}

/// Whether an earlier run, another process or mosaicml-streaming has decompressed it.
bool is_there(const MdsShard& shard) {
  struct stat raw {
  }, zip{};
  if (::stat(shard.path.c_str(), &raw) != 0 || raw.st_size != shard.bytes) return false;
  return ::stat(shard.zip->path.c_str(), &zip) != 0 || !is_older(raw, zip);
}

/// A descriptor that is closed.
struct OpenFile {
  explicit OpenFile(const std::string& path) : descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor < 0)
      fail(ExitCode::kUnusable, "[mds] cannot read shard {}: {}", path, std::strerror(errno));
  }
  ~OpenFile() { ::close(descriptor); }
  OpenFile(const OpenFile&) = delete;
  int descriptor;
};

}  // namespace

void check_zip(const MdsShard& shard) {
  const MdsZip& zip = *shard.zip;
  const OpenFile file(zip.path);
  struct stat info {};
  if (::fstat(file.descriptor, &info) != 0)
    fail(ExitCode::kUnusable, "[mds] cannot read shard {}: {}", zip.path, std::strerror(errno));
  if (info.st_size != zip.bytes)
    fail(ExitCode::kUnusable, "[mds] {} has {} bytes, index.json says {}; copy the shard again", zip.path,
         info.st_size, zip.bytes);
  if (zip.hash.empty()) return;
  ShardHasher hasher(zip.hash_name);
  std::string piece;
  for (int64_t at = 0; at < zip.bytes; at += std::ssize(piece)) {
    piece.resize(std::min(kHashPieceBytes, static_cast<size_t>(zip.bytes - at)));
    read_shard(file.descriptor, at, piece.data(), piece.size(), zip.path);
    hasher.update(piece.data(), piece.size());
  }
  if (const std::string hash = hasher.hex(); hash != zip.hash)
    fail(ExitCode::kUnusable,
         "[mds] {} is damaged: its checksum is {}, index.json says {}; copy the shard again", zip.path, hash,
         zip.hash);
}

void decompress_shard(FileOps& files, const MdsShard& shard) {
  if (is_there(shard)) return;
  check_zip(shard);
  try {
    make_dirs(files, std::filesystem::path(shard.path).parent_path());
    decompress_to_file(files, shard.zip->path, shard.zip->kind, shard.bytes, shard.path);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kStorage) throw;
    fail(ExitCode::kStorage,
         "{}: {} cannot be decompressed there; make room there, or make the folder writable", error.what(),
         shard.zip->path);
  }
}

int open_in_memory(const MdsShard& shard) {
  check_zip(shard);
  const std::string raw = decompress_to_memory(shard.zip->path, shard.zip->kind, shard.bytes);
  const int descriptor = ::memfd_create("tycho-shard", MFD_CLOEXEC);
  size_t written = 0;
  while (descriptor >= 0 && written < raw.size()) {
    const ssize_t n = ::write(descriptor, raw.data() + written, raw.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    written += static_cast<size_t>(n);
  }
  if (written < raw.size()) {
    const int reason = errno;
    if (descriptor >= 0) ::close(descriptor);
    fail(ExitCode::kUnusable, "[mds] cannot keep {} decompressed in memory: {}", shard.zip->path,
         std::strerror(reason));
  }
  return descriptor;
}

}  // namespace tycho
