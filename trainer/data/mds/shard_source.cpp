// Shards in a local folder. They are read with pread, never mapped: a truncated file causes an Error, not a
// SIGBUS.
#include "trainer/data/mds/shard_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/huge_pages.h"
#include "trainer/base/regular_file.h"
#include "trainer/data/mds/compressed_shard.h"
#include "trainer/data/mds/shard_hash.h"
#include "trainer/data/mds/shard_prefetch.h"

namespace tycho {
namespace {

constexpr size_t kHashPiece = 4 << 20;
constexpr int kDecompressThreads = 4;

/// Identifies a version of a file; differs after a write or a replacement.
struct Identity {
  uint64_t device = 0, inode = 0;
  int64_t num_bytes = 0, modified_s = 0, modified_ns = 0;
  bool operator==(const Identity&) const = default;
};

/// `result`: return value of stat.
Identity identity_of(int result, const struct stat& info, const std::string& path) {
  if (result != 0) fail(ExitCode::kUnusable, "[mds] cannot read shard {}: {}", path, std::strerror(errno));
  return {info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

Identity identity_of(int descriptor, const std::string& path) {
  struct stat info {};
  return identity_of(::fstat(descriptor, &info), info, path);
}

Identity identity_of(const std::string& path) {
  struct stat info {};
  return identity_of(::stat(path.c_str(), &info), info, path);
}

void compare_num_samples(const MdsShard& shard, const std::string& path, uint32_t samples) {
  if (samples != shard.samples)
    fail(ExitCode::kUnusable, "[mds] {} claims {} samples, index.json {}; copy the shard again", path,
         samples, shard.samples);
}

/// Compares a checksum with the index. `when`: "" or " since this run first read it".
void compare_hash(const MdsShard& shard, const std::string& path, const std::string& hash, const char* when,
                  const char* advice) {
  if (hash != shard.hash)
    fail(ExitCode::kUnusable,
         "[mds] {} is damaged{}: its checksum is {}, index.json says {}; {} or convert the data again", path,
         when, hash, shard.hash, advice);
}

std::string hash_of_file(const MdsShard& shard, int descriptor) {
  ShardHasher hasher(shard.hash_name);
  std::string piece(std::min(kHashPiece, static_cast<size_t>(shard.bytes)), '\0');
  for (int64_t at = 0; at < shard.bytes; at += static_cast<int64_t>(piece.size())) {
    piece.resize(std::min(piece.size(), static_cast<size_t>(shard.bytes - at)));
    read_shard(descriptor, at, piece.data(), piece.size(), shard.path);
    hasher.update(piece.data(), piece.size());
  }
  return hasher.hex();
}

/// Checks all bytes of a decompressed shard.
void check_raw(const MdsShard& shard, std::string_view raw, const char* when) {
  const std::string contents = "the contents of " + shard.zip->path;
  uint32_t samples = 0;
  std::memcpy(&samples, raw.data(), std::min(raw.size(), sizeof samples));
  if (!shard.lines) compare_num_samples(shard, contents, samples);
  if (!shard.hash.empty())
    compare_hash(shard, contents, shard_hash(shard.hash_name, raw), when, "copy the shard again");
}

[[noreturn]] void fail_written_to(const std::string& path) {
  fail(ExitCode::kUnusable,
       "[mds] {} was written to while this run reads it, and no checksum tells whether it is the same; "
       "start the run again when the data is complete",
       path);
}

class LocalSource final : public ShardSource {
 public:
  LocalSource(const MdsIndex& index, VerifyShards verify, ShardFiles files, RawShards raw,
              std::shared_ptr<ShardMemory> memory)
      : index_(index),
        raw_(raw),
        memory_(std::move(memory)),
        number_(memory_ ? memory_->add_source() : 0),
        always_(verify == VerifyShards::kAlways),
        files_stay_(files == ShardFiles::kStay),
        verified_(index.shards.size()),
        prefetch_(kDecompressThreads, [this](size_t shard, const std::stop_token& stop, const MayEvict&) {
          if (!index_.shards[shard].zip || (memory_ && bring(shard, stop))) return;
          decompress_shard(index_.shards[shard], stop);
        }) {
    if (always_) num_reads_.resize(index.shards.size());
    decompresses_ahead_ = raw_ == RawShards::kInFiles &&
                          std::any_of(index.shards.begin(), index.shards.end(),
                                      [](const MdsShard& shard) { return shard.zip.has_value(); });
  }

  int open(size_t index) override {
    const MdsShard& shard = index_.shards[index];
    const std::string& path = shard.path;
    if (shard.zip) {
      sweep_once(shard);
      decompress_shard(shard, stop_.get_token());
    }
    const int descriptor = open_regular_file(path);
    if (descriptor < 0)
      fail(ExitCode::kUnusable, "[mds] cannot read shard {}: {}", path, std::strerror(errno));
    return descriptor;
  }

  void verify(size_t index, int descriptor) override {
    const MdsShard& shard = index_.shards[index];
    if (decompresses_ahead_) prefetch_.was_read(index);
    if (memory_) memory_->read_elsewhere();
    std::optional<Identity>& verified = verified_[index];
    const Identity now = identity_of(descriptor, shard.path);
    if (verified == now && !is_due_again(index)) return;
    if (files_stay_ && verified && now.num_bytes == shard.bytes && verified != now && shard.hash.empty())
      fail_written_to(shard.path);
    check_shard(shard, descriptor, verified ? kSince : "");
    verified = now;  // from before the check, so that a later write is noticed at the next read
  }

  std::optional<std::span<const char>> in_memory(size_t index) override {
    const MdsShard& shard = index_.shards[index];
    if (!shard.zip) return std::nullopt;
    std::optional<std::span<const char>> raw;
    if (raw_ == RawShards::kInMemory)
      raw = only_one(index);
    else if (memory_)
      raw = shared(index);
    if (raw && is_due_again(index)) check_raw(shard, {raw->data(), raw->size()}, kSince);
    return raw;
  }

  void prefetch(std::span<const size_t> shards) override {
    if (decompresses_ahead_) prefetch_.announce(shards);
  }
  bool prefetches() const override { return decompresses_ahead_; }

  void cancel() override {
    stop_.request_stop();
    prefetch_.stop();
  }

 private:
  static constexpr const char* kSince = " since this run first read it";

  /// Counts a read. Returns true if the checksum must be compared again.
  bool is_due_again(size_t index) {
    if (!always_ || ++num_reads_[index] < index_.shards[index].samples) return false;
    num_reads_[index] = 0;
    return true;
  }

  void sweep_once(const MdsShard& shard) {
    if (!std::exchange(swept_, true)) sweep_left_overs(index_, shard);
  }

  std::span<const char> only_one(size_t index) {
    if (only_ != index) {
      only_.reset();
      only_bytes_.clear();  // the new size is only a claim of the index: its memory is touched as bytes
                            // arrive
      only_bytes_.resize(static_cast<size_t>(index_.shards[index].bytes));
      fill(index, only_bytes_, stop_.get_token());
      only_ = index;
    }
    return only_bytes_;
  }

  /// Returns the shard in shared memory; nothing when there is no memory for it, or when its file exists.
  std::optional<std::span<const char>> shared(size_t index) {
    std::optional<std::span<const char>> raw;
    while (!(raw = memory_->read(in_pool(index), stop_.get_token()))) {
      sweep_once(index_.shards[index]);
      if (!bring(index, stop_.get_token())) return std::nullopt;
    }
    prefetch_.was_read(index);
    return raw;
  }

  /// Loads a shard into shared memory. Returns false if there is no memory, or if its file exists. From any
  /// thread.
  bool bring(size_t index, const std::stop_token& stop) {
    if (is_decompressed(index_.shards[index])) return false;
    return memory_->bring(in_pool(index), [&](std::span<char> raw) { fill(index, raw, stop); });
  }

  ShardMemory::Shard in_pool(size_t index) const {
    const MdsShard& shard = index_.shards[index];
    return {number_, index, shard.samples, static_cast<size_t>(shard.bytes)};
  }

  /// Decompresses a shard into `raw` and checks it. From any thread.
  void fill(size_t index, std::span<char> raw, const std::stop_token& stop) {
    const MdsShard& shard = index_.shards[index];
    if (files_stay_ && !shard.has_checksum()) expect_same_zip(index);
    decompress_shard_into(shard, raw, stop);
    check_raw(shard, {raw.data(), raw.size()}, "");
  }

  void expect_same_zip(size_t index) {
    const std::string& path = index_.shards[index].zip->path;
    const Identity now = identity_of(path);
    const std::lock_guard lock(mutex_);
    if (zips_.try_emplace(index, now).first->second != now) fail_written_to(path);
  }

  const MdsIndex& index_;
  RawShards raw_;
  std::shared_ptr<ShardMemory> memory_;
  int number_;  // in memory_
  bool always_, files_stay_;
  bool decompresses_ahead_ = false;
  bool swept_ = false;
  std::vector<int64_t> num_reads_;                 // by shard: samples read since its checksum was compared
  std::vector<std::optional<Identity>> verified_;  // the file that was compared, by shard
  std::optional<size_t> only_;                     // with kInMemory: the shard in only_bytes_
  std::vector<char, HugePages<char>> only_bytes_;
  std::mutex mutex_;
  std::unordered_map<size_t, Identity> zips_;  // without checksums: the file that was first decompressed to
                                               // memory
  std::stop_source stop_;
  ShardPrefetch prefetch_;  // last: its threads use the rest
};

}  // namespace

std::unique_ptr<ShardSource> make_local_source(const MdsIndex& index, VerifyShards verify, ShardFiles files,
                                               RawShards raw, std::shared_ptr<ShardMemory> memory) {
  return std::make_unique<LocalSource>(index, verify, files, raw, std::move(memory));
}

MakeShardSource local_source(VerifyShards verify, RawShards raw, std::shared_ptr<ShardMemory> memory) {
  return
      [=](const MdsIndex& index) { return make_local_source(index, verify, ShardFiles::kStay, raw, memory); };
}

void check_shard(const MdsShard& shard, int descriptor, const char* when) {
  const int64_t num_bytes = identity_of(descriptor, shard.path).num_bytes;
  if (num_bytes != shard.bytes)
    fail(ExitCode::kUnusable, "[mds] {} has {} bytes{}, index.json says {}; copy the shard again", shard.path,
         num_bytes, *when == '\0' ? "" : " now", shard.bytes);
  if (!shard.lines) {
    uint32_t samples = 0;
    read_shard(descriptor, 0, &samples, sizeof samples, shard.path);
    compare_num_samples(shard, shard.path, samples);
  }
  if (shard.hash.empty()) return;
  const char* const advice =
      shard.zip ? "delete it, so that it is decompressed again," : "copy the shard again";
  compare_hash(shard, shard.path, hash_of_file(shard, descriptor), when, advice);
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
