// Collectives and messages between ranks: a world of one, ranks over sockets (tcp.h), ranks on GPUs (nccl.h).
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/kernels/tensor.h"
#include "trainer/rendezvous/recent_collectives.h"

namespace tycho {

/// A collective that runs in the background.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Returns when the op is done. Throws as the op does. Call it once, before the communicator is
  /// destroyed.
  virtual void wait() = 0;
};

/// A collective or message that starts in the background (Communicator::start).
struct GroupedCall {
  enum class Op { kAllReduce, kAllGather, kReduceScatter, kSend, kRecv };
  Op op = Op::kAllReduce;
  Tensor out, in;  // output and input of the op; collectives with one tensor set one of them
  int peer = -1;   // other rank of a message

  static GroupedCall all_reduce(const Tensor& x) { return {.op = Op::kAllReduce, .out = x, .in = {}}; }
  static GroupedCall all_gather(const Tensor& out, const Tensor& in) {
    return {.op = Op::kAllGather, .out = out, .in = in};
  }
  static GroupedCall reduce_scatter(const Tensor& out, const Tensor& in) {
    return {.op = Op::kReduceScatter, .out = out, .in = in};
  }
  static GroupedCall send(const Tensor& x, int to) {
    return {.op = Op::kSend, .out = {}, .in = x, .peer = to};
  }
  static GroupedCall recv(const Tensor& x, int from) {
    return {.op = Op::kRecv, .out = x, .in = {}, .peer = from};
  }
};

/// A group of ranks. Collectives are collective unless they say otherwise: all ranks of the group call them
/// in the same order, with tensors of the same shapes and dtypes. Tensors are contiguous, in host memory or
/// on the rank's device; on a device the collectives take effect in the order of its current stream. A
/// mistake that this rank alone can see (shapes, dtypes, devices, ranks that do not exist) is an Error before
/// anything is sent. Throws Error (kTerminated: start again) when a rank has gone, naming it by its rank in
/// the world, or with the reason and exit code that it left with. Used by one thread.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Sums x over the group, in place. x: any shape; fp32, fp64, bf16, int32, int64 or uint8. All ranks get
  /// the same bits. Over sockets ranks are summed in order, or as a tree if the world was made so, and bf16
  /// is summed in fp32 and rounded once.
  virtual void all_reduce(Tensor& x) = 0;

  /// Copies `in` of every rank to all ranks: `out` is size() pieces as large as `in`, in the order of ranks,
  /// each of the dtype of `in`; any dtype is allowed. `in` may be this rank's piece of `out`, and otherwise
  /// must not overlap it. Exact: bytes are copied. Pieces may be empty.
  virtual void all_gather(Tensor& out, const Tensor& in) = 0;

  /// Sums `in` over the group and gives each rank its piece: `in` is size() pieces as large as `out`, in the
  /// order of ranks. fp32, fp64, bf16, int32, int64 or uint8, equal for both. `out` may be this rank's piece
  /// of `in`, and otherwise must not overlap it. The order of the sum is fixed: the same numbers on the same
  /// ranks give the same bits. Over sockets it is the order of all_reduce. Pieces may be empty.
  virtual void reduce_scatter(Tensor& out, const Tensor& in) = 0;

  /// Copies x of rank `root` to all ranks.
  virtual void broadcast(Tensor& x, int root) = 0;
  virtual void barrier() = 0;

  /// Sends a copy of x to rank `to` of the group, which calls recv; not collective. Any dtype and shape.
  /// Returns when x may be written again. Messages from one rank to another arrive in the order in which they
  /// were sent. The first one waits until the other rank receives. Two ranks that both send first and receive
  /// afterwards may deadlock; start_together avoids that.
  virtual void send(const Tensor& x, int to) = 0;
  /// Receives the message of rank `from`; not collective. x must have as many bytes as the sender's tensor.
  virtual void recv(Tensor& x, int from) = 0;

  /// Starts one of these in the background; a message is not collective. Do not write an input, and do not
  /// read or write an output, until wait(). Messages of one direction between two ranks arrive in the order
  /// in which they were started, or sent without waiting in between. Over sockets two ranks may both start to
  /// send first. On GPUs the messages of a rank are transferred one after the other, while its stream
  /// computes: all ranks must start theirs in an order in which send and recv would not deadlock either.
  std::unique_ptr<Pending> start(const GroupedCall& call) {
    return std::move(start_together({call}).front());
  }

  /// Starts several collectives in the background, as one launch on GPUs, and returns one result for each.
  /// None waits for another, so messages in both directions are transferred at the same time, and ranks may
  /// list messages in any order. Collectives must be in the same order on all ranks of the group. All tensors
  /// must be in host memory, or all on the device.
  virtual std::vector<std::unique_ptr<Pending>> start_together(const std::vector<GroupedCall>& calls);

  /// Makes messages between the two ranks of each pair independent of messages of other ranks. Collective,
  /// with the same pairs of different ranks on all ranks, before any message. Over sockets this does nothing:
  /// messages are always independent; on GPUs each pair gets its own NCCL group and stream.
  virtual void connect_pairs(const std::vector<std::pair<int, int>>& /*pairs*/) {}
  /// Announces that collectives of this group will be called with x, whole or in parts, many times; not
  /// collective. NCCL then transfers its bytes without copying them, until the result is released, which must
  /// happen before x and the group are destroyed. Returns nullptr where nothing is gained. Throws Error
  /// (kTopology).
  virtual std::shared_ptr<void> registered(const Tensor& /*x*/) { return nullptr; }

  /// Returns the group of the ranks that call with the same `colour`, ordered by `key` and, where keys are
  /// equal, by their rank here. Groups of one world fail together: once a collective of one group has thrown
  /// because a rank is gone, collectives of all other groups throw the same Error.
  virtual std::unique_ptr<Communicator> split(int colour, int key) = 0;

  /// Ends this rank because of `error`, and tells the others, who wait for it; not collective. Returns the
  /// error that this rank must end with, so that all ranks end with one code: `error`, or an Error that also
  /// says why others had ended before.
  virtual Error abort(const Error& error) { return error; }

  /// Throws as the collectives do when this group, or another of its world, has broken; not collective. Call
  /// it after waiting for a device and before using the numbers that it computed: sums of a broken group are
  /// garbage.
  virtual void check() {}
  /// Recorder of the collectives of this group; not collective.
  virtual NotedGroup noted() const { return {}; }
  /// True if a rank of the world has left or died. Not collective; from any thread.
  virtual bool is_broken() { return false; }
  /// Returns the reason why a broken group broke: the words of the rank that left, or an Error naming the
  /// rank that is gone; not collective. `what`: how this rank noticed.
  virtual Error why_broken(const std::string& what) { return Error(what, ExitCode::kTerminated); }
  /// See Peers::keep_collectives_in; not collective. Does nothing for a world of one.
  virtual void keep_collectives_in(const std::string&) {}

 protected:
  /// Starts one call of start_together. Where there is no background, returns when it is done.
  virtual std::unique_ptr<Pending> start_one(GroupedCall call);
};

/// Returns the record of a collective on x; `peer` is a rank of the group.
CollectiveCall call_of(const char* op, const Tensor& x, int peer = -1);

/// Makes the group of this process alone. Its send and recv throw Error, because there is no other rank.
std::unique_ptr<Communicator> make_world_of_one();

}  // namespace tycho
