// LibTorch's TCP store, on a socket of our own where that can keep other machines out.
#include "trainer/parallel/gloo_store.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "trainer/base/error.h"

namespace tycho {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Rank 0's port, for this machine alone. The store closes it.
int listen_on_loopback(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(fd, 128) != 0) {
    const int error = errno;
    close(fd);
    fail(ExitCode::kTopology, "[parallel] rank 0 cannot listen on port {}: {}; another run may be using it",
         port, strerror(error));
  }
  return fd;
}

}  // namespace

bool on_one_machine(const RankPlace& place) { return place.num_local_ranks == place.num_ranks; }

c10::intrusive_ptr<c10d::Store> open_store(const RankPlace& place, double join_s) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(place.port);
  options.isServer = place.rank == 0;
  options.waitWorkers = false;
  options.timeout = std::chrono::milliseconds(static_cast<int64_t>(join_s * 1000));
  if (options.isServer && on_one_machine(place)) options.masterListenFd = listen_on_loopback(place.port);
  const std::string host = on_one_machine(place) ? "127.0.0.1" : place.address;
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(host, options);
    return c10::make_intrusive<c10d::PrefixStore>("tycho/" + place.token, std::move(store));
  } catch (const std::exception& error) {
    if (place.rank == 0)
      fail(ExitCode::kTopology, "[parallel] rank 0 cannot listen on port {}: {}", place.port,
           first_line(error.what()));
    fail(ExitCode::kTopology, "[parallel] rank {} did not find rank 0 at {}:{} within {:.0f} s ({}): {}",
         place.rank, host, place.port, join_s, place.source, first_line(error.what()));
  }
}

}  // namespace tycho
