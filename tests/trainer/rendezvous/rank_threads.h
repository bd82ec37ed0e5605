// Ranks that are threads of this process and meet over loopback.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/rendezvous/endpoint.h"
#include "trainer/rendezvous/meet/meet_peers.h"

namespace tycho {

inline constexpr const char* kTestToken = "0123456789abcdef0123456789abcdef";

inline RankPlace test_place(int rank, int num_ranks, int port) {
  return {.rank = rank,
          .num_ranks = num_ranks,
          .local_rank = rank,
          .num_local_ranks = num_ranks,
          .port = port,
          .token = kTestToken,
          .source = "a test"};
}

/// A port of loopback at which nobody listens now; the system hands it out to nobody else for a while.
inline int free_port() { return local_end(listen_at(numeric_endpoint("127.0.0.1", 0)).fd()).port(); }

/// What a rank threw, "" for nothing, and its code.
struct Ended {
  std::string what;
  ExitCode code = ExitCode::kOk;
};

/// Runs `body` at the place of every rank at once.
inline std::vector<Ended> at_places(int num_ranks, const std::function<void(const RankPlace&)>& body) {
  const int port = free_port();
  std::vector<Ended> ended(static_cast<size_t>(num_ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < num_ranks; ++r)
    threads.emplace_back([&, r] {
      try {
        body(test_place(r, num_ranks, port));
      } catch (const Error& error) {
        ended[static_cast<size_t>(r)] = {error.what(), error.code()};
      }
    });
  for (std::thread& thread : threads) thread.join();
  return ended;
}

/// The same with ranks that have met. Nobody goes before all have.
inline std::vector<Ended> with_peers(int num_ranks, const std::function<void(Peers&)>& body,
                                     const MeetOptions& options = {}) {
  return at_places(num_ranks, [&](const RankPlace& place) { body(*meet_peers(place, options)); });
}

inline void expect_all_well(const std::vector<Ended>& ended) {
  for (size_t r = 0; r < ended.size(); ++r) EXPECT_EQ(ended[r].what, "") << "rank " << r;
}

}  // namespace tycho
