// A port of loopback for the ranks of one test, though other test programs run beside it.
#pragma once
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <random>
#include <stdexcept>
#include <string>

namespace tycho {

/// A port at which nobody listens. It lies below the range from which Linux takes ports for connections and
/// for listeners that name none, and a socket in the abstract namespace, gone with its process, keeps other
/// tests from reserving it: a port that was merely free a moment ago could be taken before rank 0 listens.
class ReservedPort {
 public:
  ReservedPort() {
    std::random_device random;
    for (int tries = 0; tries < 1000; ++tries) {
      port_ = 20000 + static_cast<int>(random() % 12000);
      if (mark() && can_listen()) return;
      release();
    }
    throw std::runtime_error("1,000 ports between 20000 and 32000 are taken");
  }
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;
  ~ReservedPort() { release(); }

  int number() const { return port_; }

 private:
  bool mark() {
    mark_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    const std::string text = "tycho-test-port-" + std::to_string(port_);  // sun_path[0] stays 0: abstract
    text.copy(name.sun_path + 1, text.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    return bind(mark_, reinterpret_cast<const sockaddr*>(&name), size) == 0;
  }
  bool can_listen() const {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port_));
    const bool free = bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                      listen(listener, 1) == 0;
    close(listener);
    return free;
  }
  void release() {
    if (mark_ >= 0) close(mark_);
    mark_ = -1;
  }

  int port_ = 0, mark_ = -1;
};

}  // namespace tycho
