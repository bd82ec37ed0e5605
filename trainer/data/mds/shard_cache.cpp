// Fetches and evicts shards, and sets damaged ones aside.
#include "trainer/data/mds/shard_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/hash.h"
#include "trainer/base/regular_file.h"
#include "trainer/data/mds/compressed_shard.h"
#include "trainer/data/mds/shard_source.h"
#include "trainer/data/storage/decompress.h"
#include "trainer/data/storage/open_remote_files.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPart = ".part";

/// A shard in the cache, for eviction: size and last use of its raw and its compressed file.
struct CachedShard {
  int64_t num_bytes = 0;
  std::pair<int64_t, int64_t> used;  // s, ns
};

/// Returns the most bytes that a shard takes: while it is decompressed, both files exist.
int64_t bytes_at_most(const MdsShard& shard) { return shard.bytes + (shard.zip ? shard.zip->bytes : 0); }

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

/// Lock for eviction: one process at a time counts the cache's files and removes some of them.
class EvictionLock {
 public:
  explicit EvictionLock(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)) {
    int result = -1;
    while (descriptor_ >= 0 && (result = ::flock(descriptor_, LOCK_EX)) != 0 && errno == EINTR) continue;
    if (result != 0) fail(ExitCode::kStorage, "[data] cannot lock {}: {}", path, std::strerror(errno));
  }
  ~EvictionLock() { ::close(descriptor_); }
  EvictionLock(const EvictionLock&) = delete;

 private:
  int descriptor_;
};

/// Removes a file unless another process reads it. Returns true if it was removed.
bool evict(const std::string& path) {
  const int descriptor = open_regular_file(path);
  if (descriptor < 0) return false;
  const bool removed = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 && ::unlink(path.c_str()) == 0;
  ::close(descriptor);
  return removed;
}

}  // namespace

ShardCache::ShardCache(CacheSpec spec, const MdsIndex& index)
    : spec_(std::move(spec)),
      index_(index),
      files_(open_remote_files(parse_remote(spec_.remote), spec_.sas_env)) {
  if (spec_.limit_bytes) {
    int64_t largest = 0;
    for (size_t i = 0; i < index_.shards.size(); ++i) {
      const MdsShard& shard = index_.shards[i];
      largest = std::max(largest, bytes_at_most(shard));
      shard_of_path_.emplace(shard.path, i);
      if (shard.zip) shard_of_path_.emplace(shard.zip->path, i);
    }
    if (*spec_.limit_bytes < 4 * largest)
      fail(ExitCode::kUnusable, "[data] cache_limit is {}, but a shard of {} has {}: set it to at least {}",
           human_bytes(static_cast<double>(*spec_.limit_bytes)), spec_.remote,
           human_bytes(static_cast<double>(largest)), Bytes{4 * largest}.str());
  }
  clean();
}

std::string ShardCache::name_of(size_t shard) const {
  return index_.shards[shard].stored_path().substr(index_.dir.size() + 1);
}

std::string ShardCache::place_of(size_t shard) const { return files_->place_of(name_of(shard)); }

std::string ShardCache::work_path(const std::string& path, std::string_view ending) const {
  // Shards of merged data sets are in subfolders; their work files are all in one folder.
  std::string name = path.substr(index_.dir.size() + 1);
  if (const size_t slash = name.rfind('/'); slash != std::string::npos)
    name = hash_hex(name).substr(0, 8) + "-" + name.substr(slash + 1);
  return fmt::format("{}/{}{}", work_folder(spec_.dir), name, ending);
}

int ShardCache::open(size_t shard, const std::stop_token& stop) {
  const std::string& path = index_.shards[shard].path;
  while (true) {
    const int descriptor = open_regular_file(path);
    if (descriptor < 0) {
      if (errno != ENOENT)
        fail(ExitCode::kUnusable, "[data] cannot read shard {}: {}", path, std::strerror(errno));
      make_room(shard, [](size_t) { return true; });
      fetch(shard, stop);
      continue;
    }
    // Without locks (a read-only NFS mount) nothing is evicted either.
    const bool locked = ::flock(descriptor, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (locked && names_file(path, descriptor)) {
      const timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
      ++num_opened_;
      ::futimens(descriptor, times);  // eviction reads this time; fails harmlessly in a cache of another user
      return descriptor;
    }
    ::close(descriptor);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool ShardCache::touch(size_t shard) const {
  const std::string& path = index_.shards[shard].path;
  if (!spec_.limit_bytes) return exists(path);
  const timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  return ::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0 || errno != ENOENT;
}

void ShardCache::prefetch(size_t shard, const std::stop_token& stop, const MayEvict& may_evict) {
  if (touch(shard) || !make_room(shard, may_evict)) return;
  fetch(shard, stop);
}

bool ShardCache::make_room(size_t shard, const MayEvict& may_evict) const {
  if (!spec_.limit_bytes) return true;
  make_dirs(real_files(), work_folder(spec_.dir));
  const EvictionLock lock(work_folder(spec_.dir) + "/lock");
  std::unordered_map<size_t, CachedShard> cached;
  int64_t used_bytes = bytes_at_most(index_.shards[shard]);
  std::error_code error;
  for (fs::recursive_directory_iterator it(spec_.dir, error), end; !error && it != end; it.increment(error)) {
    struct stat info {};
    const std::string path = it->path().string();
    if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (const auto found = shard_of_path_.find(path); found != shard_of_path_.end()) {
      CachedShard& entry = cached[found->second];
      entry.num_bytes += info.st_size;
      entry.used = std::max(entry.used, {info.st_atim.tv_sec, info.st_atim.tv_nsec});
      used_bytes += info.st_size;
    } else if (path.starts_with(work_folder(spec_.dir) + "/") && path.ends_with(kPart)) {
      used_bytes += std::max<int64_t>(info.st_size, info.st_blocks * 512);  // includes reserved blocks
    }
  }
  std::vector<std::pair<size_t, CachedShard>> oldest_first(cached.begin(), cached.end());
  std::sort(oldest_first.begin(), oldest_first.end(),
            [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
  for (const auto& [candidate, entry] : oldest_first) {
    if (used_bytes <= *spec_.limit_bytes) break;
    if (may_evict(candidate) && evict_shard(candidate)) used_bytes -= entry.num_bytes;
  }
  return used_bytes <= *spec_.limit_bytes;
}

bool ShardCache::evict_shard(size_t shard) const {
  const MdsShard& evicted = index_.shards[shard];
  if (exists(evicted.path) && !evict(evicted.path)) return false;
  return !evicted.zip || !exists(evicted.zip->path) || evict(evicted.zip->path);
}

bool ShardCache::fetch(size_t shard, const std::stop_token& stop, const DownloadProgress& progress) {
  const MdsShard& wanted = index_.shards[shard];
  const auto is_there = [&] { return exists(wanted.path); };
  if (is_there()) return false;
  make_dirs(real_files(), work_folder(spec_.dir));
  for (const std::string& path : {wanted.path, wanted.stored_path()})
    make_dirs(real_files(), fs::path(path).parent_path().string());
  std::string problem;
  for (int attempt = 1; attempt <= 2; ++attempt) {
    std::optional<PartFile> part =
        PartFile::claim(work_path(wanted.path, kPart), is_there, stop, spec_.advice);
    if (!part) return false;
    problem = wanted.zip ? fetch_zip(shard, *part, stop, progress) : fetch_raw(shard, *part, stop, progress);
    if (problem.empty()) {
      ++num_fetched_;
      fetched_bytes_ += wanted.stored_bytes();
      return true;
    }
  }
  fail(ExitCode::kUnusable,
       "[data] {} was fetched twice and is not what its index.json says: {}. What came is in {}. Is the "
       "remote "
       "complete, and of the same version as its index.json?",
       place_of(shard), problem, work_path(wanted.stored_path(), ".bad"));
}

void ShardCache::fill(size_t shard, PartFile& part, const std::stop_token& stop,
                      const DownloadProgress& progress) {
  const MdsShard& wanted = index_.shards[shard];
  const int64_t num_bytes = wanted.stored_bytes();
  // Continues the bytes of a killed process only if a checksum would detect that they do not fit.
  if (!wanted.has_checksum() || part.num_bytes() > num_bytes) part.cut(0);
  DownloadTarget target{part.descriptor(), part.path(), part.num_bytes(), num_bytes};
  if (progress && target.num_bytes > 0) progress(target.num_bytes);
  part.reserve(num_bytes);
  if (target.num_bytes < num_bytes &&
      !download(*files_, name_of(shard), target, spec_.policy, stop, progress))
    fail(ExitCode::kUnusable, "[data] {} does not exist, but index.json names it; is the remote complete?",
         place_of(shard));
}

std::string ShardCache::fetch_raw(size_t shard, PartFile& part, const std::stop_token& stop,
                                  const DownloadProgress& progress) {
  MdsShard fetched = index_.shards[shard];
  fetched.path = part.path();
  fill(shard, part, stop, progress);
  try {
    check_shard(fetched, part.descriptor());
  } catch (const Error& error) {
    if (progress) progress(-part.num_bytes());
    part.set_aside(work_path(index_.shards[shard].path, ".bad"));
    return error.what();
  }
  part.publish(index_.shards[shard].path);
  return "";
}

std::string ShardCache::fetch_zip(size_t shard, PartFile& part, const std::stop_token& stop,
                                  const DownloadProgress& progress) {
  const MdsShard& wanted = index_.shards[shard];
  const std::string& zip_path = wanted.zip->path;
  // Uses a kept file first. No other process fetches, because this one has `part`.
  std::optional<PartFile> zip = PartFile::claim_left_over(zip_path);
  if (zip && progress) progress(zip->num_bytes());
  if (!zip) {
    zip = PartFile::claim(
        work_path(zip_path, kPart), [] { return false; }, stop, spec_.advice);
    fill(shard, *zip, stop, progress);
  }
  MdsShard fetched = wanted;
  fetched.path = part.path();
  fetched.zip->path = zip->path();
  try {
    check_zip(fetched);
    part.cut(0);
    part.reserve(wanted.bytes);
    decompress(fetched.zip->path, fetched.zip->kind, wanted.bytes, [&](std::string_view piece) {
      if (stop.stop_requested())
        fail(ExitCode::kTerminated, "[data] stopped while {} was decompressed", place_of(shard));
      part.write(piece.data(), piece.size());
    });
    check_shard(fetched, part.descriptor());
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUnusable) throw;
    if (progress) progress(-zip->num_bytes());
    zip->set_aside(work_path(zip_path, ".bad"));
    part.remove();
    return error.what();
  }
  part.publish(wanted.path);
  if (spec_.keep_zip)
    zip->publish(zip_path);
  else
    zip->remove();
  return "";
}

void ShardCache::set_aside(size_t shard, int descriptor) const {
  const std::string& path = index_.shards[shard].path;
  if (!names_file(path, descriptor)) return;  // another process was quicker
  make_dirs(real_files(), work_folder(spec_.dir));
  real_files().rename(path, work_path(path, ".bad"));
}

void ShardCache::clean() const {
  std::unordered_map<std::string, size_t> resumable;
  std::error_code error;
  std::vector<std::string> parts;
  for (fs::directory_iterator it(work_folder(spec_.dir), error), end; !error && it != end;
       it.increment(error))
    if (it->path().extension() == kPart) parts.push_back(it->path().string());
  if (parts.empty()) return;
  for (size_t i = 0; i < index_.shards.size(); ++i)
    if (index_.shards[i].has_checksum())
      resumable.emplace(work_path(index_.shards[i].stored_path(), kPart), i);
  for (const std::string& path : parts) {
    const auto shard = resumable.find(path);
    if (shard != resumable.end() && !exists(index_.shards[shard->second].path)) continue;
    if (std::optional<PartFile> part = PartFile::claim_left_over(path)) part->remove();
  }
}

}  // namespace tycho
