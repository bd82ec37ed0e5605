// One poll loop over the listening socket and all who are on their way in.
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

constexpr int kAcceptedAtOnce = 64;                    // before those who wait are served again
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
    for (Guest& guest : guests_) {
      files.push_back({guest.socket.fd(), static_cast<short>(guest.out.empty() ? POLLIN : POLLOUT), 0});
      next = std::min(next, guest.until);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
    if (poll(files.data(), files.size(), static_cast<int>(std::max<int64_t>(left, 0))) <= 0) continue;
    size_t i = 2;
    for (auto guest = guests_.begin(); guest != guests_.end(); ++i)
      guest = files[i].revents == 0 || serve(*guest) ? std::next(guest) : guests_.erase(guest);
    if (files[1].revents != 0) accept_some();
  }
}

void Listener::drop_late(Clock::time_point now) {
  guests_.remove_if([&](const Guest& guest) {
    if (guest.until > now) return false;
    num_turned_away_ += guest.server.has_proved() ? 0 : 1;
    return true;
  });
}

void Listener::accept_some() {
  for (int i = 0; i < kAcceptedAtOnce; ++i)
    if (!accept_one()) return;
}

/// Whether there may be more.
bool Listener::accept_one() {
  Socket socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.is_open()) {
    const int yes = 1;
    setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    make_room();
    Guest& guest = guests_.emplace_back(std::move(socket), token_, Clock::now() + limits_.stranger);
    if (!serve(guest)) guests_.pop_back();
    return true;
  }
  const int error = errno;
  if (error == EMFILE || error == ENFILE) {
    // Whoever waits is told by being closed; without the reserve this loop would spin.
    reserve_.close();
    num_turned_away_ += Socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC)).is_open() ? 1 : 0;
  }
  if (error == EINTR || error == ECONNABORTED) return true;
  if (error != EAGAIN) rest_until_ = Clock::now() + kRest;
  return false;
}

/// For one more stranger.
void Listener::make_room() {
  if (guests_.size() < limits_.num_strangers) return;
  std::map<std::string, size_t> of_host;
  size_t num_strangers = 0;
  for (const Guest& guest : guests_) {
    if (guest.server.has_proved()) continue;
    ++num_strangers;
    ++of_host[guest.host];
  }
  if (num_strangers < limits_.num_strangers) return;
  const auto rank = [&](const Guest& guest) {
    return std::tuple(guest.server.has_proved(), guest.server.state(),
                      -static_cast<int64_t>(of_host[guest.host]), guest.until);
  };
  guests_.erase(std::min_element(guests_.begin(), guests_.end(),
                                 [&](const Guest& a, const Guest& b) { return rank(a) < rank(b); }));
  ++num_turned_away_;
}

/// Whether it stays.
bool Listener::serve(Guest& guest) {
  std::array<char, kMaxStrangerFrame> bytes;
  try {
    while (flush(guest)) {
      if (!guest.out.empty()) return true;
      if (guest.is_last) return false;
      const ssize_t n =
          recv(guest.socket.fd(), bytes.data(), std::min(bytes.size(), guest.reader.wanted()), MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return true;
      if (n <= 0) break;
      const auto frame = guest.reader.add({bytes.data(), static_cast<size_t>(n)});
      if (frame && !take_frame(guest, *frame)) return false;
    }
  } catch (const Error&) {
    // Nonsense, or a wrong token: closed without a word.
  }
  num_turned_away_ += guest.server.has_proved() ? 0 : 1;
  return false;
}

/// Whether it is still a guest.
bool Listener::take_frame(Guest& guest, const Frame& frame) {
  guest.out += guest.server.take(frame);
  if (guest.server.state() == HandshakeServer::State::kWaitsForVerdict) {
    const DoorVerdict verdict = calls_.judge(guest.server.claim());
    guest.out += guest.server.give(verdict);
    guest.is_last = verdict.answer != Answer::kWelcome;
    guest.until = Clock::now() + limits_.proved;
  }
  if (guest.server.state() != HandshakeServer::State::kOpen) return true;
  calls_.admit(std::move(guest.socket), guest.server.claim());
  return false;
}

/// Sends what it can; false when the other end is gone.
bool Listener::flush(Guest& guest) {
  while (!guest.out.empty()) {
    const ssize_t n =
        send(guest.socket.fd(), guest.out.data(), guest.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    guest.out.erase(0, static_cast<size_t>(n));
  }
  return true;
}

}  // namespace tycho
