// One poll loop over the listening socket and all clients in the handshake.
#include "trainer/rendezvous/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <tuple>

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr int kAcceptedAtOnce = 64;                    // before waiting clients are served again
constexpr auto kRest = std::chrono::milliseconds(50);  // when the system has no descriptors left

Socket open_reserve() { return Socket(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

Listener::Listener(Socket listener, std::string token, ListenerCalls calls, ListenerLimits limits)
    : listener_(std::move(listener)),
      token_(std::move(token)),
      calls_(std::move(calls)),
      limits_(limits),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      reserve_(open_reserve()),
      thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), "tycho listener");
}

Listener::~Listener() {
  ends_ = true;
  eventfd_write(wake_.fd(), 1);
  thread_.join();
}

void Listener::run() {
  std::vector<pollfd> files;
  while (!ends_) {
    const auto now = Clock::now();
    drop_late(now);
    if (!reserve_.is_open()) reserve_ = open_reserve();
    const bool accepts = now >= rest_until_;
    files = {{wake_.fd(), POLLIN, 0}, {accepts ? listener_.fd() : -1, POLLIN, 0}};
    auto next = accepts ? now + std::chrono::seconds(60) : rest_until_;
    for (Caller& caller : callers_) {
      files.push_back({caller.socket.fd(), static_cast<short>(caller.out.empty() ? POLLIN : POLLOUT), 0});
      next = std::min(next, caller.until);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
    if (poll(files.data(), files.size(), static_cast<int>(std::max<int64_t>(left, 0))) <= 0) continue;
    size_t i = 2;
    for (auto caller = callers_.begin(); caller != callers_.end(); ++i)
      caller = files[i].revents == 0 || serve(*caller) ? std::next(caller) : callers_.erase(caller);
    if (files[1].revents != 0) accept_some();
  }
}

void Listener::drop_late(Clock::time_point now) {
  callers_.remove_if([&](const Caller& caller) {
    if (caller.until > now) return false;
    num_turned_away_ += caller.server.has_proved() ? 0 : 1;
    return true;
  });
}

void Listener::accept_some() {
  for (int i = 0; i < kAcceptedAtOnce; ++i)
    if (!accept_one()) return;
}

/// Accepts one connection. Returns true if there may be more.
bool Listener::accept_one() {
  Socket socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.is_open()) {
    const int yes = 1;
    setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    make_room();
    Caller& caller = callers_.emplace_back(std::move(socket), token_, Clock::now() + limits_.handshake);
    if (!serve(caller)) callers_.pop_back();
    return true;
  }
  const int error = errno;
  if (error == EMFILE || error == ENFILE) {
    // The waiting client sees its connection close; without the reserve this loop would spin.
    reserve_.close();
    num_turned_away_ += Socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC)).is_open() ? 1 : 0;
  }
  if (error == EINTR || error == ECONNABORTED) return true;
  if (error != EAGAIN) rest_until_ = Clock::now() + kRest;
  return false;
}

/// Drops a client, if needed, to make room for one more.
void Listener::make_room() {
  if (callers_.size() < limits_.num_unproved) return;
  std::map<std::string, size_t> of_host;
  size_t num_unproved = 0;
  for (const Caller& caller : callers_) {
    if (caller.server.has_proved()) continue;
    ++num_unproved;
    ++of_host[caller.host];
  }
  if (num_unproved < limits_.num_unproved) return;
  const auto rank = [&](const Caller& caller) {
    return std::tuple(caller.server.has_proved(), caller.server.state(),
                      -static_cast<int64_t>(of_host[caller.host]), caller.until);
  };
  callers_.erase(std::min_element(callers_.begin(), callers_.end(),
                                  [&](const Caller& a, const Caller& b) { return rank(a) < rank(b); }));
  ++num_turned_away_;
}

/// Sends to and receives from a client. Returns false if it must be dropped.
bool Listener::serve(Caller& caller) {
  std::array<char, kMaxCallerFrame> bytes;
  try {
    while (flush(caller)) {
      if (!caller.out.empty()) return true;
      if (caller.is_last) return false;
      const ssize_t n = recv(caller.socket.fd(), bytes.data(), std::min(bytes.size(), caller.reader.wanted()),
                             MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return true;
      if (n <= 0) break;
      const auto frame = caller.reader.add({bytes.data(), static_cast<size_t>(n)});
      if (frame && !take_frame(caller, *frame)) return false;
    }
  } catch (const Error&) {
    // Malformed, or a wrong token: closes without an answer.
  }
  num_turned_away_ += caller.server.has_proved() ? 0 : 1;
  return false;
}

/// Handles a frame. Returns false if the client is admitted and no longer a caller.
bool Listener::take_frame(Caller& caller, const Frame& frame) {
  caller.out += caller.server.take(frame);
  if (caller.server.state() == HandshakeServer::State::kWaitsForVerdict) {
    const HandshakeVerdict verdict = calls_.judge(caller.server.claim());
    caller.out += caller.server.give(verdict);
    caller.is_last = verdict.answer != Answer::kWelcome;
    caller.until = Clock::now() + limits_.proved;
  }
  if (caller.server.state() != HandshakeServer::State::kOpen) return true;
  calls_.admit(std::move(caller.socket), caller.server.claim());
  return false;
}

/// Sends pending bytes. Returns false when the other end is gone.
bool Listener::flush(Caller& caller) {
  while (!caller.out.empty()) {
    const ssize_t n =
        send(caller.socket.fd(), caller.out.data(), caller.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    caller.out.erase(0, static_cast<size_t>(n));
  }
  return true;
}

}  // namespace tycho
