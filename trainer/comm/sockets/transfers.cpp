// Reads and writes as long as bytes move, and polls otherwise, so that full buffers cannot deadlock ranks,
// whatever their order.
#include "trainer/comm/sockets/transfers.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;

/// Time for which bytes may still arrive after a rank has gone: a rank that has finished may end while bytes
/// that others sent before are in flight.
constexpr int kGraceMs = 300;
/// Most bytes of one system call, so that the other direction does not wait longer.
constexpr size_t kMaxBytesAtOnce = size_t{1} << 20;
constexpr int64_t kMaxPollMs = 60'000;

enum class Move { kNone, kSome, kLost };

/// Limits the bytes that one system call moves. Returns their number.
size_t shorten(iovec* vectors, int& count) {
  size_t sum = 0;
  for (int i = 0; i < count; ++i) {
    vectors[i].iov_len = std::min(vectors[i].iov_len, kMaxBytesAtOnce - sum);
    sum += vectors[i].iov_len;
    if (sum == kMaxBytesAtOnce) count = i + 1;
  }
  return sum;
}

/// Makes one system call in one direction. Sets `may` to false if another could not move more.
template <class Call>
Move move_bytes(Flow& flow, bool& may, const Call& call) {
  iovec vectors[Flow::kMaxVectors];
  int count = flow.vectors(vectors);
  const auto wanted = static_cast<ssize_t>(shorten(vectors, count));
  msghdr message = {};
  message.msg_iov = vectors;
  message.msg_iovlen = static_cast<size_t>(count);
  ssize_t moved = 0;
  do {
    moved = call(message);
  } while (moved < 0 && errno == EINTR);
  if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    may = false;
    return Move::kNone;
  }
  if (moved <= 0) return Move::kLost;  // errno says why, or the other rank has closed the connection
  flow.advance(moved);
  may = moved == wanted;
  return Move::kSome;
}

TransferFailure lost(const Transfer& transfer, bool reads, int error) {
  const bool closed = (reads && error == 0) || error == EPIPE || error == ECONNRESET;
  return {TransferFailure::Kind::kLost,
          closed ? "its connection has closed" : std::strerror(error),
          {transfer.rank}};
}

/// Moves bytes of all transfers once.
std::optional<TransferFailure> move_all(std::vector<Transfer>& transfers, bool& some) {
  for (Transfer& transfer : transfers) {
    if (transfer.out.can_move() && transfer.may_write) {
      errno = 0;
      const Move move = move_bytes(transfer.out, transfer.may_write, [&](const msghdr& message) {
        return sendmsg(transfer.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      });
      if (move == Move::kLost) return lost(transfer, /*reads=*/false, errno);
      some |= move == Move::kSome;
    }
    if (transfer.in.can_move() && transfer.may_read) {
      errno = 0;
      const Move move = move_bytes(transfer.in, transfer.may_read, [&](msghdr& message) {
        return recvmsg(transfer.fd, &message, MSG_DONTWAIT);
      });
      if (move == Move::kLost) return lost(transfer, /*reads=*/true, errno);
      some |= move == Move::kSome;
    }
  }
  return std::nullopt;
}

bool all_done(const std::vector<Transfer>& transfers) {
  return std::all_of(transfers.begin(), transfers.end(), [](const Transfer& transfer) {
    return transfer.in.is_done() && transfer.out.is_done();
  });
}

/// Returns the ranks that sent nothing; if all sent everything, the ranks that did not receive ours.
TransferFailure silent(const std::vector<Transfer>& transfers, double timeout_s) {
  TransferFailure failure{
      TransferFailure::Kind::kSilent, fmt::format("nothing came for {:g} s", timeout_s), {}};
  for (const Transfer& transfer : transfers)
    if (!transfer.in.is_done()) failure.ranks.push_back(transfer.rank);
  if (!failure.ranks.empty()) return failure;
  failure.what = fmt::format("nothing could be sent for {:g} s", timeout_s);
  for (const Transfer& transfer : transfers)
    if (!transfer.out.is_done()) failure.ranks.push_back(transfer.rank);
  return failure;
}

class Waiter {
 public:
  Waiter(std::vector<Transfer>& transfers, const WaitLimits& limits)
      : transfers_(transfers), limits_(limits), last_byte_(Clock::now()) {}

  void note_bytes() { is_fresh_ = true; }

  /// Waits until a socket may move bytes again.
  std::optional<TransferFailure> wait() {
    if (std::exchange(is_fresh_, false)) last_byte_ = Clock::now();
    list_descriptors();
    const int found = poll(polled_.data(), polled_.size(), is_broken_ ? kGraceMs : milliseconds_left());
    if (found < 0 && errno != EINTR)
      return TransferFailure{TransferFailure::Kind::kLost, std::strerror(errno), {}};
    if (found > 0) return look();
    if (is_broken_ && found == 0)
      return TransferFailure{TransferFailure::Kind::kBroken, "a rank has gone", {}};
    if (milliseconds_left() == 0) return silent(transfers_, limits_.timeout_s);
    return std::nullopt;
  }

 private:
  int milliseconds_left() const {
    const std::chrono::duration<double> waited = Clock::now() - last_byte_;
    const double left = std::clamp((limits_.timeout_s - waited.count()) * 1e3, 0.0, double{kMaxPollMs});
    return static_cast<int>(left + (left > 0 ? 1 : 0));
  }

  void list_descriptors() {
    polled_.clear();
    polled_.push_back({limits_.stop_fd, POLLIN, 0});
    polled_.push_back({is_broken_ ? -1 : limits_.broken_fd, POLLIN, 0});
    for (const Transfer& transfer : transfers_) {
      short events = 0;
      if (transfer.in.can_move()) events |= POLLIN;
      if (transfer.out.can_move()) events |= POLLOUT;
      polled_.push_back({events != 0 ? transfer.fd : -1, events, 0});
    }
  }

  std::optional<TransferFailure> look() {
    if (polled_[0].revents != 0) return TransferFailure{};
    if (polled_[1].revents != 0) is_broken_ = true;
    for (size_t i = 0; i < transfers_.size(); ++i) {
      const short events = polled_[i + 2].revents;
      const bool failed = (events & (POLLERR | POLLHUP | POLLNVAL)) != 0;  // the next call says how
      transfers_[i].may_read |= failed || (events & POLLIN) != 0;
      transfers_[i].may_write |= failed || (events & POLLOUT) != 0;
    }
    return std::nullopt;
  }

  std::vector<Transfer>& transfers_;
  const WaitLimits& limits_;
  Clock::time_point last_byte_;
  bool is_fresh_ = false, is_broken_ = false;
  std::vector<pollfd> polled_;
};

}  // namespace

void Flow::add(void* data, int64_t num_bytes, int64_t wrap) {
  if (num_bytes == 0) return;
  spans_.at(static_cast<size_t>(num_spans_++)) = {static_cast<uint8_t*>(data), num_bytes,
                                                  wrap > 0 ? wrap : num_bytes};
  total_ += num_bytes;
  limit_ = total_;
}

int Flow::vectors(iovec* out) const {
  int count = 0;
  int64_t begin = 0, at = done_;
  for (int i = 0; i < num_spans_; ++i) {
    const Span& span = spans_[static_cast<size_t>(i)];
    const int64_t end = std::min(begin + span.num_bytes, limit_);
    for (int part = 0; part < 2 && at < end; ++part) {  // twice where it wraps
      const int64_t offset = (at - begin) % span.wrap;
      const int64_t here = std::min(end - at, span.wrap - offset);
      out[count++] = {span.data + offset, static_cast<size_t>(here)};
      at += here;
    }
    if (at < end) break;
    begin += span.num_bytes;
  }
  return count;
}

std::optional<TransferFailure> run_transfers(std::vector<Transfer>& transfers, const WaitLimits& limits,
                                             const std::function<std::optional<TransferFailure>()>& moved) {
  Waiter waiter(transfers, limits);
  while (!all_done(transfers)) {
    bool some = false;
    const std::optional<TransferFailure> lost_one = move_all(transfers, some);
    if (some) {
      waiter.note_bytes();
      // A rank that noticed a mismatch first closes its connections; the bytes that it sent before explain
      // more.
      if (auto failure = moved()) return failure;
    }
    if (lost_one) return lost_one;
    if (some) continue;
    if (auto failure = waiter.wait()) return failure;
  }
  return std::nullopt;
}

}  // namespace tycho
