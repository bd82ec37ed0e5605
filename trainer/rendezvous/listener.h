// The one socket on which a rank listens: accepts clients that prove that they belong to the run. Torch-free.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "trainer/rendezvous/endpoint.h"
#include "trainer/rendezvous/frames.h"
#include "trainer/rendezvous/handshake.h"
#include "trainer/rendezvous/socket.h"

namespace tycho {

struct ListenerLimits {
  size_t num_unproved = 64;                   // connections that have not proved themselves yet
  std::chrono::milliseconds handshake{5000};  // time for a client to prove itself
  std::chrono::milliseconds proved{60'000};   // time for its last message, which it sends at once
};

/// Called on the listener's thread.
struct ListenerCalls {
  /// Returns the verdict on a client that knows the token.
  std::function<HandshakeVerdict(const RankClaim& claim)> judge;
  /// Receives the socket of a client that was welcomed: non-blocking, without Nagle's delay. Nothing beyond
  /// the handshake has been read.
  std::function<void(Socket socket, const RankClaim& claim)> admit;
};

/// Serves all clients at once on its own thread and waits for none of them. When too many are unproved, drops
/// those furthest from the end of the handshake, from the address that has most of them.
class Listener {
 public:
  Listener(Socket listener, std::string token, ListenerCalls calls, ListenerLimits limits = {});
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  Endpoint address() const { return local_end(listener_.fd()); }
  /// Number of clients that were dropped: silent, malformed, or without the token.
  int64_t num_turned_away() const { return num_turned_away_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Caller {
    Caller(Socket socket_, const std::string& token, Clock::time_point until_)
        : socket(std::move(socket_)), host(remote_end(socket.fd()).host()), server(token), until(until_) {}
    Socket socket;
    std::string host;
    HandshakeServer server;
    FrameReader reader{kMaxCallerFrame};
    Clock::time_point until;
    std::string out;       // not sent yet
    bool is_last = false;  // close after `out` is sent
  };

  void run();
  void accept_some();
  bool accept_one();
  bool serve(Caller& caller);
  bool take_frame(Caller& caller, const Frame& frame);
  bool flush(Caller& caller);
  void drop_late(Clock::time_point now);
  void make_room();

  Socket listener_;
  std::string token_;
  ListenerCalls calls_;
  ListenerLimits limits_;
  Socket wake_, reserve_;  // the reserve is closed when no descriptors are left
  std::list<Caller> callers_;
  Clock::time_point rest_until_;  // no connections are accepted until then
  std::atomic<int64_t> num_turned_away_ = 0;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace tycho
