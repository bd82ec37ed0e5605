// Ten thousand hostile connections while ranks meet and work: nobody gets in, nothing is lost, nothing
// stalls.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "tests/trainer/rendezvous/intruders.h"
#include "tests/trainer/rendezvous/rank_threads.h"

namespace tycho {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kIntruders = 10'000, kAttackers = 4;

int num_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

int64_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  return 0;
}

/// Intruders of every kind, one after the other; some stay with their connection open.
void attack(const Endpoint& listener, int first, int count, int num_ranks) {
  constexpr size_t kOpenAtOnce = 40;
  std::vector<Socket> open(kOpenAtOnce);
  for (int i = 0; i < count; ++i)
    open[static_cast<size_t>(i) % kOpenAtOnce] = send_intruder(first + i, listener, num_ranks);
}

TEST(Hostile, TenThousandIntrudersNeitherJoinNorStallNorLeakAnything) {
  const int before = num_descriptors();
  const int64_t memory_before = resident_kib();
  constexpr int64_t kRounds = 3;
  std::atomic<bool> attacked = false, broken = false;
  const auto give_up_at = Clock::now() + 60s;
  std::atomic<int64_t> rounds = 0, slowest_ms = 0, join_ms = 0;
  expect_all_well(at_places(4, [&](const RankInfo& place) {
    constexpr int kRanks = 3;
    if (place.rank == kRanks) {  // not one of them
      std::vector<std::thread> attackers;
      for (int a = 0; a < kAttackers; ++a)
        attackers.emplace_back([&, a] {
          Endpoint listener = numeric_endpoint("127.0.0.1", place.port);
          do attack(listener, a * 7, kIntruders / kAttackers, kRanks);
          while (rounds <= kRounds && !broken &&
                 Clock::now() < give_up_at);  // a fast machine is done before the ranks are
        });
      for (std::thread& attacker : attackers) attacker.join();
      attacked = true;
      return;
    }
    RankInfo mine = place;
    mine.num_ranks = mine.num_local_ranks = kRanks;
    if (place.rank == 2) std::this_thread::sleep_for(500ms);  // into the middle of it
    const auto start = Clock::now();
    const auto peers = rendezvous(mine);
    if (place.rank == 2)
      join_ms = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
    // Rank 0 says when it is over, so that all make as many rounds.
    int round = 0;
    for (bool over = false; !over; ++round) {
      if (place.rank == 0) rounds = round;
      const auto begin = Clock::now();
      over = place.rank == 0 && attacked;
      const std::vector<Socket> sockets = peers->connect(fmt::format("round {}", round), {0, 1, 2});
      char word = over ? 'e' : 'g';
      if (place.rank == 0) {
        for (const int r : {1, 2}) EXPECT_EQ(send(sockets[static_cast<size_t>(r)].fd(), &word, 1, 0), 1);
        const int64_t ms =
            std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
        slowest_ms = std::max<int64_t>(slowest_ms, ms);
        std::this_thread::sleep_for(20ms);
      } else {
        EXPECT_EQ(recv(sockets[0].fd(), &word, 1, 0), 1);
        over = word == 'e';
      }
      if (peers->is_broken()) broken = true;
      EXPECT_FALSE(broken);
    }
  }));
  EXPECT_GT(rounds, kRounds);
  EXPECT_LT(join_ms, 5000);
  EXPECT_LT(slowest_ms, 5000);
  EXPECT_EQ(num_descriptors(), before);
  EXPECT_LT(resident_kib() - memory_before, 64 << 10);
}

}  // namespace
}  // namespace tycho
