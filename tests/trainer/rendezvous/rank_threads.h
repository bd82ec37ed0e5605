// Ranks that are threads of this process and meet over loopback.
#pragma once
#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/trainer/rendezvous/reserved_port.h"
#include "trainer/base/error.h"
#include "trainer/rendezvous/meet/rendezvous.h"

namespace tycho {

inline constexpr const char* kTestToken = "0123456789abcdef0123456789abcdef";

inline RankInfo test_place(int rank, int num_ranks, int port) {
  return {.rank = rank,
          .num_ranks = num_ranks,
          .local_rank = rank,
          .num_local_ranks = num_ranks,
          .port = port,
          .token = kTestToken,
          .source = "a test"};
}

/// What a rank threw, "" for nothing, and its code.
struct Ended {
  std::string what;
  ExitCode code = ExitCode::kOk;
};

/// Runs `body` at the place of every rank at once.
inline std::vector<Ended> at_places(int num_ranks, const std::function<void(const RankInfo&)>& body) {
  const ReservedPort port;
  std::vector<Ended> ended(static_cast<size_t>(num_ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < num_ranks; ++r)
    threads.emplace_back([&, r] {
      try {
        body(test_place(r, num_ranks, port.number()));
      } catch (const Error& error) {
        ended[static_cast<size_t>(r)] = {error.what(), error.code()};
      }
    });
  for (std::thread& thread : threads) thread.join();
  return ended;
}

/// Runs `body` on ranks that have met. All have returned from rendezvous before any goes on: one that leaves
/// at once would otherwise end another that is still in it.
inline std::vector<Ended> with_shared_peers(int num_ranks,
                                            const std::function<void(std::shared_ptr<Peers>)>& body,
                                            const MeetOptions& options = {}) {
  std::barrier all_have_met(num_ranks);
  return at_places(num_ranks, [&](const RankInfo& place) {
    std::shared_ptr<Peers> peers;
    try {
      peers = rendezvous(place, options);
    } catch (...) {
      all_have_met.arrive_and_drop();
      throw;
    }
    all_have_met.arrive_and_wait();
    body(std::move(peers));
  });
}

inline std::vector<Ended> with_peers(int num_ranks, const std::function<void(Peers&)>& body,
                                     const MeetOptions& options = {}) {
  return with_shared_peers(
      num_ranks, [&](const std::shared_ptr<Peers>& peers) { body(*peers); }, options);
}

inline void expect_all_well(const std::vector<Ended>& ended) {
  for (size_t r = 0; r < ended.size(); ++r) EXPECT_EQ(ended[r].what, "") << "rank " << r;
}

}  // namespace tycho
