// Addresses of sockets: where a rank listens, and how others reach it. Torch-free.
#pragma once
#include <sys/socket.h>

#include <string>
#include <vector>

#include "trainer/rendezvous/rank_place.h"
#include "trainer/rendezvous/socket.h"

namespace tycho {

/// An IPv4 or IPv6 address and a port.
struct Endpoint {
  sockaddr_storage storage = {};
  socklen_t size = 0;

  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int port() const;
  void set_port(int port);
  bool is_loopback() const;
  /// "10.0.0.7", "fe80::1"; reads back with numeric_endpoint.
  std::string host() const;
  /// "10.0.0.7:4711", "[fe80::1]:4711".
  std::string text() const;
};

/// Of a name or a number, in the system's order; none when it is unknown, and `why` says why.
std::vector<Endpoint> resolve(const std::string& host, int port, std::string& why);
/// Of a number; throws Error for other text.
Endpoint numeric_endpoint(const std::string& host, int port);
Endpoint local_end(int fd);
Endpoint remote_end(int fd);

/// Where rank 0 listens: loopback when all ranks are on this machine; else the address of the interface that
/// TYCHO_INTERFACE names ("any" for all of them), or the one that place.address stands for here. Throws Error
/// (kTopology) when this machine has none.
Endpoint rendezvous_endpoint(const RankPlace& place, const Environment& variable);
/// Where another rank listens, at a port that the system chooses. `toward_rank_0`: its end of that
/// connection.
Endpoint own_endpoint(const RankPlace& place, const Endpoint& toward_rank_0, const Environment& variable);
/// Whether all ranks of the run are on this machine.
bool on_one_machine(const RankPlace& place);

/// Non-blocking. Throws Error (kTopology) when the address is taken or not of this machine.
Socket listen_at(const Endpoint& endpoint);

}  // namespace tycho
