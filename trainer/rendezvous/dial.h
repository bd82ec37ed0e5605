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
  Socket socket;              // if open: non-blocking, without Nagle's delay
  std::string why;            // reason for users, if not open
  bool has_no_route = false;  // this machine has no route to the endpoint
};

/// Makes one attempt to connect. `limit` holds for connecting, and again for the handshake; `gives_up` is
/// called several times a second and ends both if it returns true.
DialResult dial(const Endpoint& endpoint, const std::string& token, const RankClaim& claim,
                std::chrono::milliseconds limit, const std::function<bool()>& gives_up);

}  // namespace tycho
