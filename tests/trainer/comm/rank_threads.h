// Ranks that are threads of this process and meet over loopback.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tests/trainer/rendezvous/rank_threads.h"
#include "trainer/comm/tcp.h"

namespace tycho {

inline constexpr double kSoonS = 20;

/// A rank that has gone is missed at once, though it ended well.
inline MeetOptions missed_at_once() { return {.goodbye_s = 0.1, .beat_s = 0.1}; }

/// Runs `body` on every rank of one world at once.
inline std::vector<Ended> on_ranks(int num_ranks, const std::function<void(Communicator&)>& body,
                                   const MeetOptions& options = {}, double timeout_s = kSoonS) {
  const auto in_world = [&](std::shared_ptr<Peers> peers) {
    body(*make_tcp_world(std::move(peers), timeout_s));
  };
  return with_shared_peers(num_ranks, in_world, options);
}

/// What others say of a rank that left with `words`; what it was doing follows.
inline void expect_ended_by(int rank, const std::string& words, const Ended& ended) {
  EXPECT_EQ(ended.what.rfind(fmt::format("[parallel] rank {} ended the run: {}", rank, words), 0), 0U)
      << ended.what;
}

/// Returns the message that `op` throws, or "no error".
inline std::string error_of(const std::function<void()>& op) {
  try {
    op();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace tycho
