// Decompresses whole shards, as mosaicml-streaming does, because samples are read in any order.
#include "trainer/data/mds/compressed_shard.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <unordered_set>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/regular_file.h"
#include "trainer/data/mds/shard_hash.h"
#include "trainer/data/mds/shard_source.h"
#include "trainer/data/storage/decompress.h"
#include "trainer/data/storage/part_file.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHashPieceBytes = 1 << 20;
constexpr const char* kUnfinished = ".part";
constexpr PartAdvice kAdvice = {"free room on that disk, or name a folder on another one in decompress_dir",
                                "make the folder writable, or name another one in decompress_dir"};

bool is_older(const struct stat& file, const struct stat& other) {
  const auto time = [](const struct stat& info) {
    return std::pair(info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  };
  return time(file) < time(other);
}

/// File descriptor, closed by the destructor.
struct OpenFile {
  explicit OpenFile(const std::string& path) : descriptor(open_regular_file(path)) {
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

bool is_decompressed(const MdsShard& shard) {
  struct stat raw {
  }, zip{};
  if (::stat(shard.path.c_str(), &raw) != 0 || raw.st_size != shard.bytes) return false;
  return ::stat(shard.zip->path.c_str(), &zip) != 0 || !is_older(raw, zip);
}

void decompress_shard_into(const MdsShard& shard, std::span<char> raw, const std::stop_token& stop) {
  check_zip(shard);
  decompress_into(shard.zip->path, shard.zip->kind, raw, stop);
}

void decompress_shard(const MdsShard& shard, const std::stop_token& stop) {
  const auto is_made = [&] { return is_decompressed(shard); };
  if (is_made()) return;
  check_zip(shard);
  std::optional<PartFile> part;
  try {
    make_dirs(real_files(), fs::path(shard.path).parent_path());
    part = PartFile::claim(shard.path + kUnfinished, is_made, stop, kAdvice);
    if (!part) return;
    part->cut(0);
    part->reserve(shard.bytes);
    decompress(shard.zip->path, shard.zip->kind, shard.bytes, [&](std::string_view piece) {
      if (stop.stop_requested())
        fail(ExitCode::kTerminated, "[mds] stopped while {} was decompressed", shard.zip->path);
      part->write(piece.data(), piece.size());
    });
    part->publish(shard.path);
  } catch (const Error& error) {
    if (part) part->remove();
    if (error.code() != ExitCode::kStorage) throw;
    fail(ExitCode::kStorage, "{}: {} cannot be decompressed there", error.what(), shard.zip->path);
  }
}

void sweep_left_overs(const MdsIndex& index, const MdsShard& shard) {
  std::vector<std::string> parts;
  std::error_code error;
  for (fs::directory_iterator it(fs::path(shard.path).parent_path(), error), end; !error && it != end;
       it.increment(error))
    if (it->path().extension() == kUnfinished) parts.push_back(it->path().string());
  if (parts.empty()) return;
  std::unordered_set<std::string> ours;
  for (const MdsShard& other : index.shards) ours.insert(other.path + kUnfinished);
  for (const std::string& path : parts) {
    if (!ours.contains(path)) continue;
    if (std::optional<PartFile> part = PartFile::claim_left_over(path)) part->remove();
  }
}

}  // namespace tycho
