// Several threads take the next shard in turn; the first error stops all of them.
#include "trainer/data/mds/preload.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/data/mds/mds_index.h"
#include "trainer/data/mds/shard_cache.h"
#include "trainer/data/mds/shard_source.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_after(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

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

  void run(int num_threads, const std::function<void(const PreloadProgress&)>& progress) {
    std::vector<std::jthread> threads;
    num_working_ = num_threads;
    for (int i = 0; i < num_threads; ++i) threads.emplace_back([this] { work(); });
    const auto start = Clock::now();
    std::unique_lock lock(mutex_);
    while (!finished_.wait_for(lock, std::chrono::milliseconds(500), [&] { return num_working_ == 0; }))
      if (progress) progress(progress_after(seconds_after(start)));
    lock.unlock();
    threads.clear();
    if (error_) std::rethrow_exception(error_);
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

  void work() {
    try {
      for (size_t shard; !stop_.stop_requested() && (shard = next_++) < index_.shards.size();) bring(shard);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      stop_.request_stop();
    }
    const std::lock_guard lock(mutex_);
    --num_working_;
    finished_.notify_all();
  }

  void bring(size_t shard) {
    const auto count = [this](int64_t num_bytes) { bytes_done_ += num_bytes; };
    if (!cache_.fetch(shard, stop_.get_token(), count)) {
      if (is_whole(shard)) {
        count(index_.shards[shard].stored_bytes());
        return;
      }
      cache_.fetch(shard, stop_.get_token(), count);
    }
    ++fetched_shards_;
    fetched_bytes_ += index_.shards[shard].stored_bytes();
  }

  /// Returns false for a damaged shard, and sets it aside.
  bool is_whole(size_t shard) {
    const int descriptor = cache_.open(shard, stop_.get_token());
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
  std::stop_source stop_;
  std::atomic<size_t> next_ = 0;
  std::atomic<int64_t> bytes_done_ = 0, fetched_shards_ = 0, fetched_bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable finished_;
  int num_working_ = 0;
  std::exception_ptr error_;
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
  all.run(static_cast<int>(std::min<int64_t>(num_threads, report.shards)), progress);
  all.add_to(report);
  report.seconds = seconds_after(start);
  return report;
}

}  // namespace tycho
