// The order of an epoch, alone or under a loader: how long it takes, and in how much memory.
//
//   bench_sample_order order ALGO SAMPLES [--hash]    CPU seconds, peak KiB, and the order's checksum
//   bench_sample_order marks ALGO SAMPLES             what a checkpoint keeps of the order, as JSON
//   bench_sample_order skip ALGO SAMPLES POSITION [MARKS]   seconds and CPU seconds to the first batch at a
//                                                     position, peak KiB; with a file of marks, after reading
//                                                     it
//   bench_sample_order loader ALGO DIR POSITION       the same of a loader over MDS shards; peak after its
//                                                     first 1,000 batches
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/field_types.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/hash.h"
#include "trainer/base/json.h"
#include "trainer/data/loader/loader.h"
#include "trainer/data/order/sample_order.h"

namespace tycho {
namespace {

constexpr uint32_t kShard = 8180;  // samples of 2048 tokens in a shard of 64 MiB
constexpr int64_t kBatch = 65536;

double seconds(clockid_t clock) {
  struct timespec now {};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

/// Since it was made: as clocks show it, and of this process on the processor.
class Stopwatch {
 public:
  double wall() const { return seconds(CLOCK_MONOTONIC) - wall_; }
  double cpu() const { return seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_; }

 private:
  double wall_ = seconds(CLOCK_MONOTONIC), cpu_ = seconds(CLOCK_PROCESS_CPUTIME_ID);
};

long peak_kib() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

ShuffleAlgo algo_of(const std::string& name) {
  for (const auto& [known, algo] : enum_names(ShuffleAlgo{}))
    if (name == known) return algo;
  fail(ExitCode::kUsage, "[bench] no shuffle is called {}", name);
}

SampleOrder order_of(const std::string& algo, int64_t samples) {
  OrderSpec spec;
  spec.streams = {ShardSizes(static_cast<size_t>(samples / kShard), kShard)};
  if (samples % kShard > 0) spec.streams[0].push_back(static_cast<uint32_t>(samples % kShard));
  spec.weights.resize(1);
  spec.names = {"data"};
  spec.algo = algo_of(algo);
  spec.seed = 9176;
  spec.block_size = 4'000'000;
  return SampleOrder(spec);
}

void read_epoch(const std::string& algo, int64_t samples, bool hash) {
  Hasher hasher;
  const Stopwatch since;
  const SampleOrder order = order_of(algo, samples);
  const auto stream = order.epoch(1);
  std::vector<uint32_t> batch(kBatch);
  for (int64_t left = order.length(); left > 0; left -= static_cast<int64_t>(batch.size())) {
    batch.resize(static_cast<size_t>(std::min(left, kBatch)));
    stream->read(batch);
    if (hash) hasher.update(batch.data(), batch.size() * sizeof(uint32_t));
  }
  fmt::print("{} {} {}\n", since.cpu(), peak_kib(), hash ? hasher.hex() : "-");
}

void print_marks(const std::string& algo, int64_t samples) {
  fmt::print("{}\n", Json(order_of(algo, samples).marks(1)).dump());
}

void skip_to(const std::string& algo, int64_t samples, int64_t position, const std::string& marks_file) {
  const Stopwatch since;
  OrderMarks marks;
  if (!marks_file.empty()) marks = parse_json(read_file(marks_file), marks_file).get<OrderMarks>();
  const auto stream = order_of(algo, samples).epoch(1, marks);
  stream->skip(position);
  std::vector<uint32_t> batch(256);
  stream->read(batch);
  fmt::print("{} {} {}\n", since.wall(), since.cpu(), peak_kib());
}

void open_loader(const std::string& algo, const std::string& dir, int64_t position) {
  MdsConfig config{.local_dir = dir, .split = ""};
  config.shuffle_algo = algo_of(algo);
  const Stopwatch since;
  const auto loader = make_loader(
      {{config}}, {.seq_len = 8, .global_sequences = 256, .vocab_size = 1000, .seed = 1}, {0, position}, {});
  loader->next();
  const double wall = since.wall(), cpu = since.cpu();
  for (int i = 0; i < 1000; ++i) loader->next();
  fmt::print("{} {} {}\n", wall, cpu, peak_kib());
}

}  // namespace
}  // namespace tycho

int main(int argc, char** argv) {
  using namespace tycho;
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() >= 3 && words[0] == "order") {
      read_epoch(words[1], std::stoll(words[2]), words.size() > 3);
    } else if (words.size() == 3 && words[0] == "marks") {
      print_marks(words[1], std::stoll(words[2]));
    } else if (words.size() >= 4 && words[0] == "skip") {
      skip_to(words[1], std::stoll(words[2]), std::stoll(words[3]), words.size() > 4 ? words[4] : "");
    } else if (words.size() == 4 && words[0] == "loader") {
      open_loader(words[1], words[2], std::stoll(words[3]));
    } else {
      fmt::print(stderr,
                 "bench_sample_order order ALGO SAMPLES [--hash] | marks ALGO SAMPLES | skip ALGO SAMPLES "
                 "POSITION [MARKS] | loader ALGO DIR POSITION\n");
      return 2;
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
