// How fast a checkpoint becomes durable, against raw writes of the same bytes on the same disk in the same
// run.
//   bench_checkpoint_write FOLDER [GIGABYTES] [ROUNDS] [RANKS]
// Ranks write a shard each, at the same time, as threads of this program; one of them commits. Prints each
// round and the ratio of medians: checkpoint over the best of raw O_DIRECT, the same with as many writers as
// ranks, and raw write + fsync.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

#include "bench/timing.h"
#include "trainer/base/error.h"
#include "trainer/base/page_memory.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/shard_writer.h"

namespace tycho {
namespace {

constexpr size_t kRequestBytes = size_t{16} << 20;
constexpr int64_t kTensorElements = 7'077'888;  // 768 x 9216, about a layer's worth of a 125M model

/// Leaves the disk idle: what was written before is down, and what was removed is discarded.
void settle() {
  ::sync();
  std::this_thread::sleep_for(std::chrono::seconds(1));
}

/// Calls part(r) for every rank at once.
void on_ranks(int num_ranks, const std::function<void(int)>& part) {
  std::vector<std::jthread> others;
  for (int r = 1; r < num_ranks; ++r) others.emplace_back(part, r);
  part(0);
}

/// Writes num_bytes from memory with 16 MiB requests and one fsync.
void raw_file(const std::string& path, const char* data, size_t num_bytes, bool direct) {
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
}

double raw_write(const std::string& dir, const char* data, size_t num_bytes, bool direct, int num_writers) {
  const size_t each = num_bytes / static_cast<size_t>(num_writers) / kRequestBytes * kRequestBytes;
  const auto path = [&](int writer) { return fmt::format("{}/raw-{}", dir, writer); };
  settle();
  const double took_s = seconds([&] {
    on_ranks(num_writers, [&](int writer) {
      const size_t begin = static_cast<size_t>(writer) * each;
      raw_file(path(writer), data + begin, writer + 1 == num_writers ? num_bytes - begin : each, direct);
    });
  });
  for (int writer = 0; writer < num_writers; ++writer) std::filesystem::remove(path(writer));
  return took_s;
}

double checkpoint_write(const std::string& dir, const char* data, size_t num_bytes, int num_ranks) {
  std::vector<std::vector<TensorBytes>> tensors(static_cast<size_t>(num_ranks));
  for (size_t at = 0; at < num_bytes;) {
    const auto elements = std::min<int64_t>(kTensorElements, static_cast<int64_t>(num_bytes - at) / 4);
    tensors[at * tensors.size() / num_bytes].push_back(
        {fmt::format("t{}", at), "F32", {elements}, data + at, elements * 4});
    at += static_cast<size_t>(elements) * 4;
  }
  CheckpointStore store(real_files(), dir, 0, 1);
  const auto write = [&](const std::string& to) {
    std::vector<WrittenShard> shards(tensors.size());
    on_ranks(num_ranks, [&](int rank) {
      const auto r = static_cast<size_t>(rank);
      shards[r] = write_shard(real_files(), to, rank_file_name(rank), tensors[r]);
    });
    return shards;
  };
  CheckpointInfo saved;
  settle();
  const double took_s =
      seconds([&] { saved = store.save({.step = 1}, static_cast<int64_t>(num_bytes), write); });
  std::filesystem::remove_all(saved.path);
  return took_s;
}

void run(const std::string& folder, double gigabytes, int rounds, int num_ranks) {
  const size_t num_bytes = static_cast<size_t>(gigabytes * 1e9) / kRequestBytes * kRequestBytes;
  const std::string dir = folder + "/tycho-bench-checkpoint";
  std::filesystem::create_directories(dir);
  const PageMemory memory =
      page_memory(num_bytes);  // huge pages, as a snapshot's: the disk takes them faster
  char* data = memory.get();
  uint64_t state = 1;
  for (size_t i = 0; i < num_bytes / 8; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(data + i * 8, &state, 8);
  }
  std::vector<double> direct, together, buffered, checkpoint;
  const double scale = static_cast<double>(num_bytes) / 1e9;
  for (int i = 0; i < rounds; ++i) {
    // Whoever comes first in a round changes, so that no one always follows the slowest.
    for (int turn = 0; turn < 4; ++turn) {
      switch ((i + turn) % 4) {
        case 0: direct.push_back(scale / raw_write(dir, data, num_bytes, true, 1)); break;
        case 1: checkpoint.push_back(scale / checkpoint_write(dir, data, num_bytes, num_ranks)); break;
        case 2: buffered.push_back(scale / raw_write(dir, data, num_bytes, false, 1)); break;
        case 3: together.push_back(scale / raw_write(dir, data, num_bytes, true, num_ranks)); break;
      }
    }
    fmt::print(
        "round={} direct_gbps={:.3f} direct_of_ranks_gbps={:.3f} buffered_fsync_gbps={:.3f} "
        "checkpoint_gbps={:.3f}\n",
        i + 1, direct.back(), together.back(), buffered.back(), checkpoint.back());
  }
  const double best = std::max({median(direct), median(together), median(buffered)});
  fmt::print(
      "bytes={} ranks={} rounds={} best_raw_gbps={:.3f} checkpoint_gbps={:.3f} ratio={:.3f} target={}\n",
      num_bytes, num_ranks, rounds, best, median(checkpoint), median(checkpoint) / best,
      num_ranks > 1 ? 0.85 : 0.8);
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace tycho

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_checkpoint_write FOLDER [GIGABYTES=1.5] [ROUNDS=5] [RANKS=1]\n");
    return 2;
  }
  try {
    tycho::run(argv[1], argc > 2 ? std::atof(argv[2]) : 1.5, argc > 3 ? std::max(1, std::atoi(argv[3])) : 5,
               argc > 4 ? std::max(1, std::atoi(argv[4])) : 1);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
