// Fetching, eviction and what happens to bad shards.
#include "trainer/data/remote/shard_cache.h"

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
#include "trainer/data/mds/shard_source.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPart = ".part";

/// A shard in the cache, for eviction.
struct CachedShard {
  size_t shard = 0;
  int64_t num_bytes = 0;
  timespec used{};
};

bool used_before(const CachedShard& a, const CachedShard& b) {
  return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
}

/// One process at a time counts what is there and removes some of it.
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

/// Removes a shard unless somebody reads it.
bool evict(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
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
  for (const MdsShard& shard : index_.shards)
    if (shard.zip)
      fail(ExitCode::kUnusable,
           "[data] shards of {} are compressed: from a remote only uncompressed shards are read so far. Copy "
           "the data set to a folder and name that as local_dir, without remote",
           spec_.remote);
  if (spec_.limit_bytes) {
    int64_t largest = 0;
    for (size_t i = 0; i < index_.shards.size(); ++i) {
      largest = std::max(largest, index_.shards[i].bytes);
      shard_of_path_.emplace(index_.shards[i].path, i);
    }
    if (*spec_.limit_bytes < 4 * largest)
      fail(ExitCode::kUnusable, "[data] cache_limit is {}, but a shard of {} has {}: set it to at least {}",
           human_bytes(static_cast<double>(*spec_.limit_bytes)), spec_.remote,
           human_bytes(static_cast<double>(largest)), Bytes{4 * largest}.str());
  }
  clean();
}

std::string ShardCache::name_of(size_t shard) const {
  return index_.shards[shard].path.substr(index_.dir.size() + 1);
}

std::string ShardCache::place_of(size_t shard) const { return files_->place_of(name_of(shard)); }

std::string ShardCache::work_path(size_t shard, std::string_view ending) const {
  // Shards of merged data sets are in folders; their work files are all in one.
  std::string name = name_of(shard);
  if (const size_t slash = name.rfind('/'); slash != std::string::npos)
    name = hash_hex(name).substr(0, 8) + "-" + name.substr(slash + 1);
  return fmt::format("{}/{}{}", work_folder(spec_.dir), name, ending);
}

int ShardCache::open(size_t shard, const std::stop_token& stop) {
  const std::string& path = index_.shards[shard].path;
  while (true) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
      if (errno != ENOENT)
        fail(ExitCode::kUnusable, "[data] cannot read shard {}: {}", path, std::strerror(errno));
      make_room(index_.shards[shard].bytes, [](size_t) { return true; });
      fetch(shard, stop);
      continue;
    }
    // Without locks (a read-only NFS mount) nothing evicts either.
    const bool locked = ::flock(descriptor, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (locked && names_file(path, descriptor)) {
      const timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
      ::futimens(descriptor, times);  // what is evicted goes by it; not possible in a cache of another user
      return descriptor;
    }
    ::close(descriptor);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool ShardCache::touch(size_t shard) const {
  const std::string& path = index_.shards[shard].path;
  if (!spec_.limit_bytes) return ::access(path.c_str(), F_OK) == 0;
  const timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  return ::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0 || errno != ENOENT;
}

void ShardCache::prefetch(size_t shard, const std::stop_token& stop, const MayEvict& may_evict) {
  if (touch(shard) || !make_room(index_.shards[shard].bytes, may_evict)) return;
  fetch(shard, stop);
}

bool ShardCache::make_room(int64_t num_bytes, const MayEvict& may_evict) const {
  if (!spec_.limit_bytes) return true;
  make_dirs(real_files(), work_folder(spec_.dir));
  const EvictionLock lock(work_folder(spec_.dir) + "/lock");
  std::vector<CachedShard> cached;
  int64_t used_bytes = num_bytes;
  std::error_code error;
  for (fs::recursive_directory_iterator it(spec_.dir, error), end; !error && it != end; it.increment(error)) {
    struct stat info {};
    const std::string path = it->path().string();
    if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (const auto found = shard_of_path_.find(path); found != shard_of_path_.end()) {
      cached.push_back({found->second, info.st_size, info.st_atim});
      used_bytes += info.st_size;
    } else if (path.starts_with(work_folder(spec_.dir) + "/") && path.ends_with(kPart)) {
      used_bytes += std::max<int64_t>(info.st_size, info.st_blocks * 512);  // with what is reserved
    }
  }
  std::sort(cached.begin(), cached.end(), used_before);
  for (const CachedShard& candidate : cached) {
    if (used_bytes <= *spec_.limit_bytes) break;
    if (may_evict(candidate.shard) && evict(index_.shards[candidate.shard].path))
      used_bytes -= candidate.num_bytes;
  }
  return used_bytes <= *spec_.limit_bytes;
}

bool ShardCache::fetch(size_t shard, const std::stop_token& stop, const DownloadProgress& progress) {
  const std::string& path = index_.shards[shard].path;
  if (::access(path.c_str(), F_OK) == 0) return false;
  make_dirs(real_files(), work_folder(spec_.dir));
  make_dirs(real_files(), fs::path(path).parent_path().string());
  std::string problem;
  for (int attempt = 1; attempt <= 2; ++attempt) {
    std::optional<PartFile> part = PartFile::claim(work_path(shard, kPart), path, stop);
    if (!part) return false;
    problem = fill(shard, *part, stop, progress);
    if (problem.empty()) {
      part->publish(path);
      return true;
    }
    if (progress) progress(-part->num_bytes());
    part->set_aside(work_path(shard, ".bad"));
  }
  fail(ExitCode::kUnusable,
       "[data] {} was fetched twice and is not what its index.json says: {}. What came is in {}. Is the "
       "remote "
       "complete, and of the same version as its index.json?",
       place_of(shard), problem, work_path(shard, ".bad"));
}

std::string ShardCache::fill(size_t shard, PartFile& part, const std::stop_token& stop,
                             const DownloadProgress& progress) {
  MdsShard expected = index_.shards[shard];
  // What a killed process has left is continued only where a checksum would tell that it does not fit.
  if (expected.hash.empty() || part.num_bytes() > expected.bytes) part.cut(0);
  DownloadTarget target{part.descriptor(), part.path(), part.num_bytes(), expected.bytes};
  if (progress && target.num_bytes > 0) progress(target.num_bytes);
  part.reserve(expected.bytes);
  if (target.num_bytes < expected.bytes &&
      !download(*files_, name_of(shard), target, spec_.policy, stop, progress))
    fail(ExitCode::kUnusable, "[data] {} does not exist, but index.json names it; is the remote complete?",
         place_of(shard));
  expected.path = part.path();
  try {
    check_shard(expected, part.descriptor());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void ShardCache::set_aside(size_t shard, int descriptor) const {
  const std::string& path = index_.shards[shard].path;
  if (!names_file(path, descriptor)) return;  // another process was quicker
  make_dirs(real_files(), work_folder(spec_.dir));
  real_files().rename(path, work_path(shard, ".bad"));
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
    if (!index_.shards[i].hash.empty()) resumable.emplace(work_path(i, kPart), i);
  for (const std::string& path : parts) {
    const auto shard = resumable.find(path);
    if (shard != resumable.end() && ::access(index_.shards[shard->second].path.c_str(), F_OK) != 0) continue;
    if (std::optional<PartFile> part = PartFile::claim_left_over(path)) part->remove();
  }
}

}  // namespace tycho
