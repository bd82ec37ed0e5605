// Moves bytes to and from several ranks at once, over sockets that never block. Torch-free.
#pragma once
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tycho {

/// One direction of a connection: the bytes of a few spans of memory, one after the other.
class Flow {
 public:
  /// Adds the next `num_bytes`. With `wrap`, memory is that many bytes long, used over and over.
  void add(void* data, int64_t num_bytes, int64_t wrap = 0);
  void clear() { *this = {}; }
  int64_t total() const { return total_; }
  int64_t done() const { return done_; }
  bool is_done() const { return done_ == total_; }
  /// True if bytes may move now: those before `limit`, which starts at the total.
  bool can_move() const { return done_ < limit_; }
  void set_limit(int64_t limit) { limit_ = limit < total_ ? limit : total_; }
  void advance(int64_t num_bytes) { done_ += num_bytes; }
  /// Writes the memory of the bytes that may move next to `out`, in at most kMaxVectors parts. Returns their
  /// number.
  static constexpr int kMaxVectors = 6;
  int vectors(iovec* out) const;

 private:
  struct Span {
    uint8_t* data;
    int64_t num_bytes, wrap;
  };
  std::array<Span, 3> spans_;
  int num_spans_ = 0;
  int64_t total_ = 0, done_ = 0, limit_ = 0;
};

/// The two directions of a connection with one rank of a group.
struct Transfer {
  int fd = -1;
  int rank = 0;  // in the group
  Flow out, in;
  bool may_read = true, may_write = true;  // until the socket would block
};

/// Reason why bytes do not move any more.
struct TransferFailure {
  enum class Kind {
    kLost,      // the connection with a rank broke
    kSilent,    // ranks did not come in time
    kBroken,    // a rank of the world has gone
    kMismatch,  // ranks called different collectives; `what` is the complete message
    kStopped    // this rank ends the group
  };
  Kind kind = Kind::kStopped;
  std::string what;
  std::vector<int> ranks;  // ranks of the group: whose connection broke, or who did not come
};

/// Events that end a wait early. Descriptors are readable from that moment on; -1: none.
struct WaitLimits {
  int broken_fd = -1;      // a rank of the world has gone
  int stop_fd = -1;        // this rank ends the group
  double timeout_s = 1e9;  // without a byte
};

/// Returns when all flows are done, or with the reason why they cannot be. `moved` is called after bytes have
/// moved: it may raise limits, and ends the wait by returning a failure.
std::optional<TransferFailure> run_transfers(std::vector<Transfer>& transfers, const WaitLimits& limits,
                                             const std::function<std::optional<TransferFailure>()>& moved);

}  // namespace tycho
