// How fast a checkpoint becomes durable, against raw writes of the same bytes on the same disk in the same
// run.
//   bench_checkpoint_write FOLDER [GIGABYTES] [ROUNDS]
// Prints each round and the ratio of medians: checkpoint over the better of raw O_DIRECT and raw write +
// fsync.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <thread>

#include "bench/timing.h"
#include "trainer/base/error.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {
namespace {

constexpr size_t kRequestBytes = size_t{16} << 20;
constexpr int64_t kTensorElements = 7'077'888;  // 768 x 9216, about a layer's worth of a 125M model

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Leaves the disk idle: what was written before is down, and what was removed is discarded.
void settle() {
  ::sync();
  std::this_thread::sleep_for(std::chrono::seconds(1));
}

/// Writes num_bytes from memory with 16 MiB requests and one fsync.
double raw_write(const std::string& path, const char* data, size_t num_bytes, bool direct) {
  settle();
  const auto begin = std::chrono::steady_clock::now();
  const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | (direct ? O_DIRECT : 0), 0600);
  if (fd < 0) fail(ExitCode::kStorage, "[bench] cannot create {}: {}", path, std::strerror(errno));
  for (size_t at = 0; at < num_bytes; at += kRequestBytes) {
    const size_t n = std::min(kRequestBytes, num_bytes - at);
    if (::write(fd, data + at, n) != static_cast<ssize_t>(n)) {
      fail(ExitCode::kStorage, "[bench] cannot write {}: {}", path, std::strerror(errno));
    }
  }
  if (::fsync(fd) != 0) fail(ExitCode::kStorage, "[bench] cannot sync {}", path);
  ::close(fd);
  const double seconds = seconds_since(begin);
  std::filesystem::remove(path);
  return seconds;
}

double checkpoint_write(const std::string& dir, const char* data, size_t num_bytes) {
  std::vector<TensorBytes> tensors;
  for (size_t at = 0; at < num_bytes;) {
    const auto elements = std::min<int64_t>(kTensorElements, static_cast<int64_t>(num_bytes - at) / 4);
    tensors.push_back({fmt::format("t{}", at), "F32", {elements}, data + at, elements * 4});
    at += static_cast<size_t>(elements) * 4;
  }
  CheckpointStore store(real_files(), dir, 0, 1);
  settle();
  const auto begin = std::chrono::steady_clock::now();
  const CheckpointInfo saved = store.save({.step = 1}, tensors);
  const double seconds = seconds_since(begin);
  std::filesystem::remove_all(saved.path);
  return seconds;
}

void run(const std::string& folder, double gigabytes, int rounds) {
  const size_t num_bytes = static_cast<size_t>(gigabytes * 1e9) / kRequestBytes * kRequestBytes;
  const std::string dir = folder + "/tycho-bench-checkpoint";
  std::filesystem::create_directories(dir);
  auto* data = static_cast<char*>(std::aligned_alloc(4096, num_bytes));
  if (!data) throw std::bad_alloc();
  uint64_t state = 1;
  for (size_t i = 0; i < num_bytes / 8; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(data + i * 8, &state, 8);
  }
  std::vector<double> direct, buffered, checkpoint;
  const double scale = static_cast<double>(num_bytes) / 1e9;
  for (int i = 0; i < rounds; ++i) {
    // Whoever comes first in a round changes, so that no one always follows the slowest.
    for (int turn = 0; turn < 3; ++turn) {
      switch ((i + turn) % 3) {
        case 0: direct.push_back(scale / raw_write(dir + "/raw", data, num_bytes, true)); break;
        case 1: checkpoint.push_back(scale / checkpoint_write(dir, data, num_bytes)); break;
        case 2: buffered.push_back(scale / raw_write(dir + "/raw", data, num_bytes, false)); break;
      }
    }
    fmt::print("round={} direct_gbps={:.3f} buffered_fsync_gbps={:.3f} checkpoint_gbps={:.3f}\n", i + 1,
               direct.back(), buffered.back(), checkpoint.back());
  }
  const double best = std::max(median(direct), median(buffered));
  fmt::print("bytes={} rounds={} best_raw_gbps={:.3f} checkpoint_gbps={:.3f} ratio={:.3f} target=0.8\n",
             num_bytes, rounds, best, median(checkpoint), median(checkpoint) / best);
  std::free(data);
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace tycho

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_checkpoint_write FOLDER [GIGABYTES=1.5] [ROUNDS=5]\n");
    return 2;
  }
  try {
    tycho::run(argv[1], argc > 2 ? std::atof(argv[2]) : 1.5, argc > 3 ? std::max(1, std::atoi(argv[3])) : 5);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
