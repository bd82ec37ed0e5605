// Ranks over TCP that are threads of this process, each with a connection of its own.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "trainer/parallel/gloo.h"
#include "trainer/rendezvous/free_port.h"

namespace tycho {

inline constexpr GlooTimeouts kSoon = {.join_s = 20, .collective_s = 20};

inline RankPlace place_of(int rank, int num_ranks, int port) {
  return {.rank = rank,
          .num_ranks = num_ranks,
          .local_rank = rank,
          .num_local_ranks = num_ranks,
          .port = port,
          .token = "test",
          .source = "a test"};
}

/// Runs `body` at the place of every rank at once; what each threw, "" for nothing, and its code.
struct Ended {
  std::string what;
  ExitCode code = ExitCode::kOk;
};
inline std::vector<Ended> at_places(int num_ranks, const std::function<void(const RankPlace&)>& body) {
  // LibTorch's record of collectives is one map of the process, and no lock guards it: off before it begins.
  setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1);
  const int port = free_port();
  std::vector<Ended> ended(static_cast<size_t>(num_ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < num_ranks; ++r)
    threads.emplace_back([&, r] {
      try {
        body(place_of(r, num_ranks, port));
      } catch (const Error& error) {
        ended[static_cast<size_t>(r)] = {error.what(), error.code()};
      }
    });
  for (std::thread& thread : threads) thread.join();
  return ended;
}

/// The same in one world.
inline std::vector<Ended> on_ranks(int num_ranks, const std::function<void(Communicator&)>& body) {
  return at_places(num_ranks, [&](const RankPlace& place) { body(*make_gloo_world(place, kSoon)); });
}

/// What `verb` throws, or "no error".
inline std::string error_of(const std::function<void()>& verb) {
  try {
    verb();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

inline void expect_all_well(const std::vector<Ended>& ended) {
  for (size_t r = 0; r < ended.size(); ++r) EXPECT_EQ(ended[r].what, "") << "rank " << r;
}

}  // namespace tycho
