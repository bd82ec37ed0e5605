// The first error of a shard stops the other transfers.
#include "trainer/data/mds/preload.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <stop_token>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/base/in_parallel.h"
#include "trainer/base/seconds_since.h"
#include "trainer/data/mds/mds_index.h"
#include "trainer/data/mds/shard_cache.h"
#include "trainer/data/mds/shard_source.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;

/// Checks the free space before hours of downloads, rather than after them.
void check_room(const MdsIndex& index, bool keep_zip) {
  int64_t missing = 0;
  for (const MdsShard& shard : index.shards)
    if (::access(shard.path.c_str(), F_OK) != 0)
      missing += shard.bytes + (shard.zip && keep_zip ? shard.zip->bytes : 0);
  struct statvfs disk {};
  if (::statvfs(index.dir.c_str(), &disk) != 0) return;
  const auto room = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  if (static_cast<double>(missing) > room)
    fail(ExitCode::kStorage,
         "[data] {} has room for {}, but {} are missing there; free some or choose another folder", index.dir,
         human_bytes(room), human_bytes(static_cast<double>(missing)));
}

class Preload {
 public:
  Preload(const CacheSpec& spec, const MdsIndex& index) : index_(index), cache_(spec, index) {
    for (const MdsShard& shard : index.shards) bytes_total_ += shard.stored_bytes();
  }

  void run(size_t num_threads, const std::function<void(const PreloadProgress&)>& progress) {
    const auto bring_shard = [this](size_t shard, const std::stop_token& stop) { bring(shard, stop); };
    std::future<void> end = std::async(std::launch::async, [&] {
      in_parallel(index_.shards.size(), num_threads, std::stop_token(), bring_shard);
    });
    const auto start = Clock::now();
    while (end.wait_for(std::chrono::milliseconds(500)) != std::future_status::ready)
      if (progress) progress(progress_after(seconds_since(start)));
    end.get();
  }

  void add_to(PreloadReport& report) const {
    report.fetched_shards = fetched_shards_;
    report.fetched_bytes = fetched_bytes_;
  }

 private:
  PreloadProgress progress_after(double seconds) const {
    PreloadProgress progress{bytes_done_, bytes_total_, static_cast<double>(bytes_done_) / seconds, 0};
    if (progress.bytes_per_s > 0)
      progress.left_s =
          static_cast<double>(progress.bytes_total - progress.bytes_done) / progress.bytes_per_s;
    return progress;
  }

  void bring(size_t shard, const std::stop_token& stop) {
    const auto count = [this](int64_t num_bytes) { bytes_done_ += num_bytes; };
    if (!cache_.fetch(shard, stop, count)) {
      if (is_whole(shard, stop)) {
        count(index_.shards[shard].stored_bytes());
        return;
      }
      cache_.fetch(shard, stop, count);
    }
    ++fetched_shards_;
    fetched_bytes_ += index_.shards[shard].stored_bytes();
  }

  /// Returns false for a damaged shard, and sets it aside.
  bool is_whole(size_t shard, const std::stop_token& stop) {
    const int descriptor = cache_.open(shard, stop);
    bool whole = true;
    try {
      check_shard(index_.shards[shard], descriptor);
    } catch (const Error&) {
      whole = false;
      cache_.set_aside(shard, descriptor);
    }
    ::close(descriptor);
    return whole;
  }

  const MdsIndex& index_;
  ShardCache cache_;
  int64_t bytes_total_ = 0;  // bytes to fetch
  std::atomic<int64_t> bytes_done_ = 0, fetched_shards_ = 0, fetched_bytes_ = 0;
};

}  // namespace

PreloadReport preload(const CacheSpec& spec, int num_threads,
                      const std::function<void(const PreloadProgress&)>& progress) {
  TYCHO_CHECK(!spec.limit_bytes && num_threads > 0, "[data] a preload has threads and no limit");
  const auto start = Clock::now();
  fetch_index(spec);
  const MdsIndex index = with_offset_files(read_mds_index(spec.dir));
  check_room(index, spec.keep_zip);
  PreloadReport report{spec.remote, spec.dir, static_cast<int64_t>(index.shards.size()), index.num_bytes()};
  for (const MdsShard& shard : index.shards) report.with_checksum += shard.has_checksum();
  Preload all(spec, index);
  all.run(static_cast<size_t>(num_threads), progress);
  all.add_to(report);
  report.seconds = seconds_since(start);
  return report;
}

}  // namespace tycho
