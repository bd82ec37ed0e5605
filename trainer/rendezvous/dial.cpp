// Sockets do not block here: the listener may be silent, or not belong to Tycho at all.
#include "trainer/rendezvous/dial.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "trainer/base/error.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kSlice = std::chrono::milliseconds(50);  // between two questions whether to give up

/// Failure of one attempt; caught in dial().
struct Broken {
  std::string why;
  bool has_no_route = false;
};

bool is_no_route(int error) { return error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN; }

class Call {
 public:
  Call(std::chrono::milliseconds limit, const std::function<bool()>& gives_up)
      : limit_(limit), gives_up_(gives_up) {}

  void connect_to(const Endpoint& endpoint) {
    socket_ = Socket(socket(endpoint.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_.is_open()) throw Broken{std::strerror(errno)};
    const int yes = 1;
    setsockopt(socket_.fd(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    begin();
    if (connect(socket_.fd(), endpoint.address(), endpoint.size) == 0) return;
    if (errno != EINPROGRESS) throw Broken{std::strerror(errno), is_no_route(errno)};
    wait(POLLOUT, "it does not answer");
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket_.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) throw Broken{std::strerror(error), is_no_route(error)};
    // A connection to an unused port of this machine may connect to itself.
    const Endpoint here = local_end(socket_.fd()), there = remote_end(socket_.fd());
    if (here.port() == there.port() && here.host() == there.host()) throw Broken{"nobody listens there"};
  }

  void begin() { until_ = Clock::now() + limit_; }

  void send_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n > 0)
        bytes.remove_prefix(static_cast<size_t>(n));
      else if (errno == EAGAIN)
        wait(POLLOUT, kSilent);
      else if (errno != EINTR)
        throw Broken{fmt::format("it hung up during the handshake: {}", std::strerror(errno))};
    }
  }

  Frame receive() {
    FrameReader reader(kMaxCallerFrame);
    std::array<char, kMaxCallerFrame> bytes;
    while (true) {
      const ssize_t n = recv(socket_.fd(), bytes.data(), std::min(bytes.size(), reader.wanted()), 0);
      if (n > 0) {
        if (auto frame = reader.add({bytes.data(), static_cast<size_t>(n)})) return *frame;
      } else if (n == 0) {
        throw Broken{"it hung up during the handshake: it belongs to another run, or the tokens differ"};
      } else if (errno == EAGAIN) {
        wait(POLLIN, kSilent);
      } else if (errno != EINTR) {
        throw Broken{fmt::format("it hung up during the handshake: {}", std::strerror(errno))};
      }
    }
  }

  Socket take() { return std::move(socket_); }

 private:
  static constexpr const char* kSilent = "it does not say what a rank of this run says";

  void wait(short events, const char* why_not) {
    pollfd file = {socket_.fd(), events, 0};
    while (true) {
      if (gives_up_()) throw Broken{"given up"};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until_ - Clock::now());
      if (left.count() <= 0) throw Broken{why_not};
      if (poll(&file, 1, static_cast<int>(std::min<int64_t>(left.count(), kSlice.count()))) > 0) return;
    }
  }

  std::chrono::milliseconds limit_;
  const std::function<bool()>& gives_up_;
  Socket socket_;
  Clock::time_point until_;
};

}  // namespace

DialResult dial(const Endpoint& endpoint, const std::string& token, const RankClaim& claim,
                std::chrono::milliseconds limit, const std::function<bool()>& gives_up) {
  using How = DialResult::How;
  const auto again = [](std::string why, bool has_no_route = false) {
    return DialResult{How::kTryAgain, {}, std::move(why), has_no_route};
  };
  HandshakeClient client(token, claim);
  Call call(limit, gives_up);
  try {
    call.connect_to(endpoint);
    call.begin();
    call.send_all(client.hello());
    call.send_all(client.claim(call.receive()));
    const HandshakeVerdict verdict = client.verdict(call.receive());
    if (verdict.answer == Answer::kRefused) return {How::kRefused, {}, verdict.why, false};
    if (verdict.answer == Answer::kLater) return again(verdict.why);
    call.send_all(HandshakeClient::confirm());
    return {How::kOpen, call.take(), "", false};
  } catch (const Broken& broken) {
    return again(broken.why, broken.has_no_route);
  } catch (const Error& error) {  // the other side is not a rank: it sent something else
    return again(error.what());
  }
}

}  // namespace tycho
