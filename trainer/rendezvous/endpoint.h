// Addresses of sockets: the address on which a rank listens, and by which others reach it. Torch-free.
#pragma once
#include <sys/socket.h>

#include <string>
#include <vector>

#include "trainer/rendezvous/rank_info.h"
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
  /// Address as text for numeric_endpoint: "10.0.0.7", "fe80::1".
  std::string host() const;
  /// Address and port: "10.0.0.7:4711", "[fe80::1]:4711".
  std::string text() const;
};

/// Resolves a name or a number. Returns its addresses in the system's order; none when it is unknown, with
/// the reason in `why`.
std::vector<Endpoint> resolve(const std::string& host, int port, std::string& why);
/// Parses a numeric address. Throws Error for other text.
Endpoint numeric_endpoint(const std::string& host, int port);
Endpoint local_end(int fd);
Endpoint remote_end(int fd);

/// Returns the address on which rank 0 listens: loopback when all ranks are on this machine; else the address
/// of the interface that TYCHO_INTERFACE names ("any" for all of them), or this machine's address for
/// place.address. Throws Error (kTopology) when this machine has none.
Endpoint rendezvous_endpoint(const RankInfo& place, const Environment& variable);
/// Returns the address on which another rank listens, at a port that the system chooses. `toward_rank_0`:
/// this rank's end of its connection to rank 0.
Endpoint own_endpoint(const RankInfo& place, const Endpoint& toward_rank_0, const Environment& variable);
/// True if all ranks of the run are on this machine.
bool on_one_machine(const RankInfo& place);

/// Opens a non-blocking listener. Throws Error (kTopology) when the address is taken or belongs to another
/// machine.
Socket listen_at(const Endpoint& endpoint);

}  // namespace tycho
