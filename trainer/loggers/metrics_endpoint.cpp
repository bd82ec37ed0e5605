// One thread looks at all connections in turn and waits for none of them.
#include "trainer/loggers/metrics_endpoint.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/base/error.h"

namespace tycho {
namespace {

using EndpointClock = std::chrono::steady_clock;
constexpr int kAcceptsAtOnce = 64;
constexpr std::chrono::milliseconds kPause{100};

/// Owns a descriptor and closes it.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

struct Client {
  Descriptor connection;
  std::string address;
  EndpointClock::time_point deadline;
  std::string head, reply;  // the reply is empty until the whole head has arrived
  size_t sent = 0;
  bool done = false;
};

std::string reply_of(int status, const char* word, const std::string& text) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n"
      "Connection: close\r\n{}\r\n{}",
      status, word, text.size(), status == 405 ? "Allow: GET\r\n" : "", text);
}

Descriptor listen_on(const std::string& host, int port) {
  addrinfo wanted{};
  wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string service = fmt::format("{}", port);
  if (const int code = ::getaddrinfo(host.c_str(), service.c_str(), &wanted, &found); code != 0)
    fail(ExitCode::kStorage, "[prometheus] host: \"{}\" is not a numeric address: {}", host,
         ::gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> address(found, &::freeaddrinfo);
  Descriptor listener(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool listens = listener.get() >= 0 &&
                       ::bind(listener.get(), address->ai_addr, address->ai_addrlen) == 0 &&
                       ::listen(listener.get(), SOMAXCONN) == 0;
  if (!listens)
    fail(ExitCode::kStorage, "[prometheus] cannot listen on port {} of {}: {}; give another port", port, host,
         std::strerror(errno));
  return listener;
}

int port_of(const Descriptor& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char service[NI_MAXSERV] = "";
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, nullptr, 0, service, sizeof service,
                NI_NUMERICSERV);
  return std::atoi(service);
}

}  // namespace

struct MetricsEndpoint::State {
  State(const std::string& host, int port, EndpointLimits given)
      : limits(given), listener(listen_on(host, port)), wake(::eventfd(0, EFD_CLOEXEC)) {}

  const EndpointLimits limits;
  Descriptor listener, wake;
  std::mutex mutex;
  std::string text;             // guarded by mutex
  std::vector<Client> clients;  // oldest first
  EndpointClock::time_point listens_again;
  std::jthread thread;

  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const bool listens = EndpointClock::now() >= listens_again;
      std::vector<pollfd> watched = {{wake.get(), POLLIN, 0},
                                     {listener.get(), static_cast<short>(listens ? POLLIN : 0), 0}};
      auto next = listens ? EndpointClock::time_point::max() : listens_again;
      for (const Client& client : clients) {
        watched.push_back(
            {client.connection.get(), static_cast<short>(client.reply.empty() ? POLLIN : POLLOUT), 0});
        next = std::min(next, client.deadline);
      }
      ::poll(watched.data(), watched.size(), milliseconds_until(next));
      for (size_t i = 0; i < clients.size(); ++i)
        if (watched[i + 2].revents != 0) go_on(clients[i]);
      const auto now = EndpointClock::now();
      std::erase_if(clients, [&](const Client& client) { return client.done || client.deadline <= now; });
      if ((watched[1].revents & POLLIN) != 0) accept_waiting();
    }
  }

  int milliseconds_until(EndpointClock::time_point moment) const {
    if (moment == EndpointClock::time_point::max()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(moment - EndpointClock::now());
    return static_cast<int>(std::max<int64_t>(0, left.count()));
  }

  /// Accepts waiting clients, most of which have already sent their request. Limited, so that connected
  /// clients are served in between.
  void accept_waiting() {
    const auto patience =
        std::chrono::duration_cast<EndpointClock::duration>(std::chrono::duration<double>(limits.client_s));
    for (int i = 0; i < kAcceptsAtOnce; ++i) {
      sockaddr_storage address{};
      socklen_t size = sizeof address;
      auto* const who = reinterpret_cast<sockaddr*>(&address);
      Descriptor connection(::accept4(listener.get(), who, &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (connection.get() < 0) {
        // The process has no descriptor left: looking at once again would take a core.
        if (errno != EAGAIN && errno != EINTR) listens_again = EndpointClock::now() + kPause;
        return;
      }
      if (std::ssize(clients) >= limits.connections) drop_one();
      char name[NI_MAXHOST] = "";
      ::getnameinfo(who, size, name, sizeof name, nullptr, 0, NI_NUMERICHOST);
      clients.push_back({.connection = std::move(connection),
                         .address = name,
                         .deadline = EndpointClock::now() + patience});
      go_on(clients.back());
    }
  }

  void drop_one() {
    const auto has_ended = [](const Client& client) { return client.done; };
    if (std::erase_if(clients, has_ended) > 0) return;
    std::map<std::string_view, int> count;
    for (const Client& client : clients) ++count[client.address];
    const auto most = std::max_element(count.begin(), count.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    clients.erase(std::find_if(clients.begin(), clients.end(),
                               [&](const Client& client) { return client.address == most->first; }));
  }

  /// Reads and writes as much as possible without waiting.
  void go_on(Client& client) {
    char piece[2048];
    while (client.reply.empty()) {
      const ssize_t n = ::recv(client.connection.get(), piece, sizeof piece, 0);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (n <= 0) {
        client.done = true;
        return;
      }
      client.head.append(piece, static_cast<size_t>(n));
      client.reply = reply_to(client.head);
    }
    while (client.sent < client.reply.size()) {
      const ssize_t n = ::send(client.connection.get(), client.reply.data() + client.sent,
                               client.reply.size() - client.sent, MSG_NOSIGNAL);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (n <= 0) break;
      client.sent += static_cast<size_t>(n);
    }
    client.done = true;
  }

  /// Returns the reply to a request; "" until the head is complete.
  std::string reply_to(std::string_view head) {
    if (std::ssize(head) > limits.head_bytes)
      return reply_of(431, "Request Header Fields Too Large", "the request is too long\n");
    if (head.find("\r\n\r\n") == head.npos) return "";
    const std::string_view line = head.substr(0, head.find("\r\n"));
    if (line.find(" HTTP/1.") == line.npos) return reply_of(400, "Bad Request", "this is not HTTP\n");
    if (!line.starts_with("GET ")) return reply_of(405, "Method Not Allowed", "only GET is answered\n");
    const std::string_view target = line.substr(4, line.find(' ', 4) - 4);
    if (target.substr(0, target.find('?')) != "/metrics")
      return reply_of(404, "Not Found", "the numbers of the run are at /metrics\n");
    const std::lock_guard lock(mutex);
    return reply_of(200, "OK", text);
  }
};

MetricsEndpoint::MetricsEndpoint(const std::string& host, int port, EndpointLimits limits)
    : state_(std::make_unique<State>(host, port, limits)) {
  state_->thread = std::jthread([state = state_.get()](std::stop_token stop) { state->serve(stop); });
}

MetricsEndpoint::~MetricsEndpoint() {
  state_->thread.request_stop();
  ::eventfd_write(state_->wake.get(), 1);
  state_->thread.join();
}

int MetricsEndpoint::port() const { return port_of(state_->listener); }

void MetricsEndpoint::set_text(std::string text) {
  const std::lock_guard lock(state_->mutex);
  state_->text = std::move(text);
}

}  // namespace tycho
