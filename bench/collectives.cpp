// Times the collectives of ranks on CPUs: start one process a rank, as for a run. Rank 0 prints a line of
// JSON for each operation and size.
#include <ATen/ops/ones.h>
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "bench/timing.h"
#include "trainer/comm/tcp.h"
#include "trainer/rendezvous/meet/rendezvous.h"

namespace {

constexpr int64_t kSmallest = 1 << 10, kLargest = 64 << 20, kBytesOfARound = 32 << 20;
constexpr int kRounds = 5, kFewest = 2, kMost = 300;

/// Seconds of one call: the fastest of some rounds.
template <class Call>
double time_of(tycho::Communicator& world, int64_t num_bytes, const Call& call) {
  const auto calls = static_cast<int>(std::clamp<int64_t>(kBytesOfARound / num_bytes, kFewest, kMost));
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    world.barrier();
    rounds.push_back(seconds([&] {
                       for (int i = 0; i < calls; ++i) call();
                     }) /
                     calls);
  }
  return *std::min_element(rounds.begin(), rounds.end());
}

void measure(tycho::Communicator& world) {
  for (int64_t num_bytes = kSmallest; num_bytes <= kLargest; num_bytes *= 4) {
    at::Tensor whole = at::ones({num_bytes / 4}), piece = at::ones({num_bytes / 4 / world.size()});
    const auto print = [&](const char* verb, double time) {
      if (world.rank() == 0)
        fmt::print("{{\"verb\": \"{}\", \"bytes\": {}, \"us\": {:.2f}}}\n", verb, num_bytes, time * 1e6);
    };
    print("all_reduce", time_of(world, num_bytes, [&] { world.all_reduce(whole); }));
    print("all_gather", time_of(world, num_bytes, [&] { world.all_gather(whole, piece); }));
    print("reduce_scatter", time_of(world, num_bytes, [&] { world.reduce_scatter(piece, whole); }));
    print("broadcast", time_of(world, num_bytes, [&] { world.broadcast(whole, 0); }));
  }
}

}  // namespace

int main() {
  try {
    const tycho::RankInfo place = tycho::find_rank_place(tycho::process_environment());
    measure(*tycho::make_tcp_world(tycho::rendezvous(place, {})));
  } catch (const tycho::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}
