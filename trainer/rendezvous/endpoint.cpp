// Chooses one interface, or all of them if asked to.
#include "trainer/rendezvous/endpoint.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr int kBacklog = 1024;  // so that a flood of connections does not fill it at once
constexpr const char* kAny = "any";
constexpr const char* kVariables[] = {"TYCHO_INTERFACE", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"};

Endpoint endpoint_of(const sockaddr* address, socklen_t size) {
  Endpoint endpoint;
  std::memcpy(&endpoint.storage, address, size);
  endpoint.size = size;
  return endpoint;
}

Endpoint ipv4(uint32_t address, int port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(address);
  Endpoint endpoint = endpoint_of(reinterpret_cast<const sockaddr*>(&in), sizeof in);
  endpoint.set_port(port);
  return endpoint;
}

socklen_t size_of(const sockaddr& address) {
  if (address.sa_family == AF_INET) return sizeof(sockaddr_in);
  return address.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : 0;
}

/// Returns the first address of an interface that is up, IPv4 before IPv6.
std::optional<Endpoint> of_interface(const std::string& name) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(all, freeifaddrs);
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next)
      if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == family && name == one->ifa_name &&
          (one->ifa_flags & IFF_UP) != 0)
        return endpoint_of(one->ifa_addr, size_of(*one->ifa_addr));
  return std::nullopt;
}

/// Returns the address of the interface that a variable names. Gloo's and NCCL's variables may hold lists and
/// patterns, which only these libraries read.
std::optional<Endpoint> chosen_interface(const Environment& variable, int port) {
  for (const char* name : kVariables) {
    const std::string value = variable(name).value_or("");
    if (value.empty()) continue;
    const bool is_ours = name == kVariables[0];
    if (is_ours && value == kAny) return ipv4(INADDR_ANY, port);
    std::optional<Endpoint> found = of_interface(value);
    if (!found && is_ours)
      fail(
          ExitCode::kTopology,
          "[ranks] {} expected the name of a network interface of this machine that is up, or {}; got \"{}\"",
          name, kAny, value);
    if (!found) continue;
    found->set_port(port);
    return found;
  }
  return std::nullopt;
}

bool is_of_this_machine(Endpoint endpoint) {
  endpoint.set_port(0);
  const Socket probe(socket(endpoint.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return probe.is_open() && bind(probe.fd(), endpoint.address(), endpoint.size) == 0;
}

/// Returns the address of the default route, which this machine shows to others. Sends nothing.
std::optional<Endpoint> outward(int port) {
  const Socket probe(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const Endpoint far = ipv4(0xC0000201, 9);  // 192.0.2.1, which exists in documents only
  if (!probe.is_open() || connect(probe.fd(), far.address(), far.size) != 0) return std::nullopt;
  Endpoint here = local_end(probe.fd());
  here.set_port(port);
  return here;
}

}  // namespace

int Endpoint::port() const {
  if (storage.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

void Endpoint::set_port(int port) {
  const uint16_t number = htons(static_cast<uint16_t>(port));
  if (storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = number;
  else
    reinterpret_cast<sockaddr_in*>(&storage)->sin_port = number;
}

bool Endpoint::is_loopback() const {
  if (storage.ss_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
  return ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr) >> 24 == 127;
}

std::string Endpoint::host() const {
  char text[NI_MAXHOST] = "?";
  getnameinfo(address(), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

std::string Endpoint::text() const {
  return storage.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host(), port())
                                       : fmt::format("{}:{}", host(), port());
}

std::vector<Endpoint> resolve(const std::string& host, int port, std::string& why) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* all = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &all);
  if (error != 0) {
    why = fmt::format("the name {} is not known: {}", host, gai_strerror(error));
    return {};
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(all, freeaddrinfo);
  std::vector<Endpoint> found;
  for (const addrinfo* one = all; one != nullptr; one = one->ai_next)
    if (size_of(*one->ai_addr) != 0) {
      found.push_back(endpoint_of(one->ai_addr, one->ai_addrlen));
      found.back().set_port(port);
    }
  return found;
}

Endpoint numeric_endpoint(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* all = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &all) != 0)
    fail(ExitCode::kTopology, "[ranks] expected a numeric address, got \"{}\"", host);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(all, freeaddrinfo);
  Endpoint endpoint = endpoint_of(all->ai_addr, all->ai_addrlen);
  endpoint.set_port(port);
  return endpoint;
}

Endpoint local_end(int fd) {
  Endpoint endpoint;
  endpoint.size = sizeof endpoint.storage;
  getsockname(fd, reinterpret_cast<sockaddr*>(&endpoint.storage), &endpoint.size);
  return endpoint;
}

Endpoint remote_end(int fd) {
  Endpoint endpoint;
  endpoint.size = sizeof endpoint.storage;
  getpeername(fd, reinterpret_cast<sockaddr*>(&endpoint.storage), &endpoint.size);
  return endpoint;
}

bool on_one_machine(const RankInfo& place) { return place.num_local_ranks == place.num_ranks; }

Endpoint rendezvous_endpoint(const RankInfo& place, const Environment& variable) {
  if (on_one_machine(place)) return ipv4(INADDR_LOOPBACK, place.port);
  if (const auto chosen = chosen_interface(variable, place.port)) return *chosen;
  std::string why = "it is not an address of this machine";
  const bool is_own_name = place.address != "localhost" &&
                           place.address.find_first_not_of("0123456789.") != std::string::npos &&
                           place.address.find(':') == std::string::npos;
  for (const Endpoint& endpoint : resolve(place.address, place.port, why)) {
    if (!is_of_this_machine(endpoint)) continue;
    if (!endpoint.is_loopback() || !is_own_name) return endpoint;
    // Debian gives a machine's own name the address 127.0.1.1, by which others cannot reach it.
    if (const auto here = outward(place.port)) return *here;
    why = "it resolves to this machine's loopback, which other machines cannot reach";
  }
  fail(ExitCode::kTopology,
       "[ranks] rank 0 cannot listen at {} ({}): {}. Set TYCHO_INTERFACE to the network interface that the "
       "other "
       "machines reach, or TYCHO_ADDRESS to the address of rank 0",
       place.address, place.source, why);
}

Endpoint own_endpoint(const RankInfo& place, const Endpoint& toward_rank_0, const Environment& variable) {
  if (!on_one_machine(place))
    if (const auto chosen = chosen_interface(variable, 0)) return *chosen;
  Endpoint endpoint = toward_rank_0;
  endpoint.set_port(0);
  return endpoint;
}

Socket listen_at(const Endpoint& endpoint) {
  Socket listener(socket(endpoint.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (listener.is_open() && bind(listener.fd(), endpoint.address(), endpoint.size) == 0 &&
      listen(listener.fd(), kBacklog) == 0)
    return listener;
  const int error = errno;
  fail(ExitCode::kTopology, "[ranks] cannot listen at {}: {}{}", endpoint.text(), std::strerror(error),
       error == EADDRINUSE ? "; another run may be using the port" : "");
}

}  // namespace tycho
