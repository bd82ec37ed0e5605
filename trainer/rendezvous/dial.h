// Connects to a listener and completes the handshake, with a time limit for each step. Torch-free.
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "trainer/rendezvous/endpoint.h"
#include "trainer/rendezvous/handshake.h"
#include "trainer/rendezvous/socket.h"

namespace tycho {

struct DialResult {
  enum class How { kOpen, kTryAgain, kRefused } how = How::kTryAgain;
  Socket socket;              // when it is open: non-blocking, without Nagle's delay
  std::string why;            // else, for people
  bool has_no_route = false;  // to the endpoint, from this machine
};

/// One attempt. `limit` holds for connecting, and again for the handshake; `gives_up` is asked several times
/// a second and ends both.
DialResult dial(const Endpoint& endpoint, const std::string& token, const RankClaim& claim,
                std::chrono::milliseconds limit, const std::function<bool()>& gives_up);

}  // namespace tycho
