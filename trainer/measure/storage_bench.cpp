// Files are written with fsync, dropped from the page cache, and read back, one alone and several at once.
#include "trainer/measure/storage_bench.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/in_parallel.h"
#include "trainer/base/random/random_bytes.h"
#include "trainer/base/seconds_since.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr size_t kBlockBytes = size_t{16} << 20, kSmallBytes = 4096;
constexpr size_t kSyncs = 20, kSmallFiles = 200;

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return seconds_since(start);
}

/// A temporary folder, removed by the destructor.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& parent) : path_(parent + "/.tycho-bench-" + random_hex(4)) {
    make_dirs(real_files(), path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }
  void clear() const {
    for (const auto& entry : fs::directory_iterator(path_)) fs::remove(entry.path());
  }
  std::string file(size_t index) const { return fmt::format("{}/file-{}", path_, index); }

 private:
  std::string path_;
};

void require_no_stop(const std::atomic<int>& stop) {
  if (const int signal = stop; signal != 0)
    fail(static_cast<ExitCode>(128 + signal), "[bench] stopped by signal {}", signal);
}

void write_file(const std::string& path, int64_t num_bytes, const std::string& block,
                const std::atomic<int>& stop) {
  const auto file = real_files().create(path);
  for (int64_t left = num_bytes; left > 0; left -= static_cast<int64_t>(block.size())) {
    require_no_stop(stop);
    file->write(block.data(), static_cast<size_t>(std::min(left, static_cast<int64_t>(block.size()))));
  }
  file->sync();
  file->close();
}

void drop_from_cache(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

void read_file_in_blocks(const std::string& path, int64_t num_bytes, const std::atomic<int>& stop) {
  std::string block(kBlockBytes, '\0');
  for (int64_t at = 0; at < num_bytes; at += static_cast<int64_t>(kBlockBytes)) {
    require_no_stop(stop);
    const auto n = std::min(static_cast<int64_t>(kBlockBytes), num_bytes - at);
    read_exactly(path, at, block.data(), static_cast<size_t>(n));
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure_small(const ScratchFolder& scratch, StorageReport& report) {
  const std::string text(kSmallBytes, 'x');
  std::vector<double> syncs;
  for (size_t i = 0; i < kSyncs; ++i)
    syncs.push_back(seconds_of([&] {
      const auto file = real_files().create(scratch.file(i));
      file->write(text.data(), text.size());
      file->sync();
      file->close();
    }));
  report.fsync_s = median(syncs);
  const double seconds = seconds_of([&] {
    for (size_t i = 0; i < kSmallFiles; ++i) {
      const auto file = real_files().create(scratch.file(kSyncs + i));
      file->write(text.data(), text.size());
      file->close();
    }
  });
  report.files_per_s = static_cast<double>(kSmallFiles) / seconds;
  scratch.clear();
}

void measure_large(const StorageBenchRequest& request, const ScratchFolder& scratch,
                   const std::atomic<int>& stop, StorageReport& report) {
  const std::string block = random_bytes(kBlockBytes);  // no file system can compress it
  std::vector<size_t> counts = {1};
  if (request.num_files > 1) counts.push_back(static_cast<size_t>(request.num_files));
  for (const size_t count : counts) {
    const std::string files = count == 1 ? "1 file" : fmt::format("{} files at once", count);
    const int64_t num_bytes = request.file_bytes * static_cast<int64_t>(count);
    const double write_s = seconds_of([&] {
      in_parallel(count, count,
                  [&](size_t i) { write_file(scratch.file(i), request.file_bytes, block, stop); });
    });
    report.rates.push_back({"write " + files, num_bytes, write_s});
    for (size_t i = 0; i < count; ++i) drop_from_cache(scratch.file(i));
    const double read_s = seconds_of([&] {
      in_parallel(count, count,
                  [&](size_t i) { read_file_in_blocks(scratch.file(i), request.file_bytes, stop); });
    });
    report.rates.push_back({"read " + files, num_bytes, read_s});
    scratch.clear();
  }
}

}  // namespace

StorageReport bench_storage(const StorageBenchRequest& request, const std::atomic<int>& stop) {
  if (request.file_bytes < 1 || request.num_files < 1)
    fail(ExitCode::kUsage, "[bench] expected at least one file of at least one byte; got {} of {}",
         request.num_files, request.file_bytes);
  if (!fs::is_directory(request.folder))
    fail(ExitCode::kUnusable, "[bench] {} is not a folder", request.folder);
  StorageReport report = {.folder = request.folder, .file_system = file_system_name(request.folder)};
  report.advice = file_system_advice(report.file_system);
  report.free_bytes = free_bytes(request.folder);
  const int64_t needed = request.file_bytes * request.num_files;
  if (report.free_bytes >= 0 && report.free_bytes < needed)
    fail(ExitCode::kStorage, "[bench] {} has {} free, and the files take {}: use smaller ones (--size)",
         request.folder, human_bytes(static_cast<double>(report.free_bytes)),
         human_bytes(static_cast<double>(needed)));
  const ScratchFolder scratch(request.folder);
  report.facts = storage_facts(scratch.path());
  require_no_stop(stop);
  measure_small(scratch, report);
  measure_large(request, scratch, stop, report);
  return report;
}

}  // namespace tycho
