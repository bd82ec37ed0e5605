// The collectives of a group of ranks, over one socket with each of them. Torch-free.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/comm/sockets/rank_sums.h"
#include "trainer/comm/sockets/transfers.h"
#include "trainer/rendezvous/socket.h"

namespace tycho {

enum class CollectiveOp : uint8_t {
  kAllReduce = 1,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kBarrier,
  kMessage
};
const char* name_of(CollectiveOp op);

/// Header that a rank sends before anything else; the headers of all ranks must be equal.
struct Announcement {
  uint32_t magic = 0;
  CollectiveOp op = CollectiveOp::kBarrier;
  uint8_t type = 0;  // SumType of a sum
  uint16_t unused = 0;
  uint32_t number = 0;  // number of earlier collectives in the group
  int32_t root = 0;
  int64_t num_bytes = 0;
  bool operator==(const Announcement&) const = default;
};

/// Each op returns when this rank's part is done. A result other than nothing is the reason why the group
/// has broken, and later calls return the same. One call at a time, except stop().
class SocketCollectives {
 public:
  /// sockets[r] is the connection with rank r of the group; this rank's own is closed.
  SocketCollectives(int rank, std::vector<Socket> sockets, const WaitLimits& limits,
                    SumOrder order = SumOrder::kRanks);
  SocketCollectives(const SocketCollectives&) = delete;
  SocketCollectives& operator=(const SocketCollectives&) = delete;

  std::optional<TransferFailure> all_reduce(SumType type, void* x, int64_t count);
  /// num_bytes and count are those of a rank's piece.
  std::optional<TransferFailure> all_gather(void* out, const void* in, int64_t num_bytes);
  std::optional<TransferFailure> reduce_scatter(SumType type, void* out, const void* in, int64_t count);
  std::optional<TransferFailure> broadcast(void* x, int64_t num_bytes, int root);
  std::optional<TransferFailure> barrier();
  /// Ends the running call and all later ones. From any thread.
  void stop();
  /// Descriptor that is readable after stop().
  int stop_fd() const { return stop_.fd(); }

 private:
  struct Reduction;

  int size() const { return static_cast<int>(sockets_.size()); }
  void begin(Announcement mine);
  Transfer& add_transfer(int rank, bool sends, bool receives);
  std::optional<TransferFailure> finish(const std::function<void()>& moved = {});
  std::optional<TransferFailure> check_announcements();
  std::optional<TransferFailure> sum_whole(SumType type, uint8_t* x, int64_t count);
  std::optional<TransferFailure> sum_pieces(SumType type, uint8_t* x, int64_t count);
  void sum_arrived(Reduction& sum);
  uint8_t* scratch(int64_t num_bytes);

  int rank_;
  std::vector<Socket> sockets_;
  Socket stop_;
  WaitLimits limits_;
  SumOrder order_;
  std::optional<TransferFailure> failure_;
  uint32_t num_calls_ = 0;
  // State of the running call, kept so that small calls allocate nothing.
  Announcement mine_;
  std::vector<Announcement> theirs_;  // by rank
  std::vector<bool> is_checked_;
  std::vector<Transfer> transfers_;
  std::vector<const void*> rows_;
  std::unique_ptr<uint8_t[]> scratch_;
  int64_t scratch_bytes_ = 0;
};

/// Messages between this rank and one other, in each direction in the order in which they were sent. One call
/// at a time in each direction; the two directions may have a thread each.
class MessageWire {
 public:
  /// `own` and `other` are ranks of the group.
  MessageWire(int own, int other, Socket socket, const WaitLimits& limits);
  std::optional<TransferFailure> send(const void* x, int64_t num_bytes);
  std::optional<TransferFailure> recv(void* x, int64_t num_bytes);

 private:
  int own_, other_;
  Socket socket_;
  WaitLimits limits_;
  uint32_t num_sent_ = 0, num_received_ = 0;
  std::vector<Transfer> out_, in_;  // one transfer each
};

}  // namespace tycho
