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

/// A verb that runs in the background.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Returns when it is done. Throws what the verb throws. Call it once, before the communicator goes.
  virtual void wait() = 0;
};

/// One of several verbs that start together (Communicator::start_together).
struct GroupedCall {
  enum class Verb { kAllReduce, kAllGather, kReduceScatter, kSend, kRecv };
  Verb verb = Verb::kAllReduce;
  Tensor out, in;  // what the verb writes, and what it reads; one of them where it has one tensor
  int peer = -1;   // of a message

  static GroupedCall all_reduce(const Tensor& x) { return {.verb = Verb::kAllReduce, .out = x, .in = {}}; }
  static GroupedCall all_gather(const Tensor& out, const Tensor& in) {
    return {.verb = Verb::kAllGather, .out = out, .in = in};
  }
  static GroupedCall reduce_scatter(const Tensor& out, const Tensor& in) {
    return {.verb = Verb::kReduceScatter, .out = out, .in = in};
  }
  static GroupedCall send(const Tensor& x, int to) {
    return {.verb = Verb::kSend, .out = {}, .in = x, .peer = to};
  }
  static GroupedCall recv(const Tensor& x, int from) {
    return {.verb = Verb::kRecv, .out = x, .in = {}, .peer = from};
  }
};

/// A group of ranks. Verbs are collective unless they say otherwise: all ranks of the group call them in the
/// same order, with tensors of the same shapes and dtypes. Tensors are contiguous, in host memory or on the
/// rank's device; on a device the verbs take effect in the order of its current stream. What can be seen to
/// be wrong on this rank alone (shapes, dtypes, devices, ranks that do not exist) is an Error before anything
/// is sent. Throws Error (kTerminated: start again) when a rank has gone, naming it by its rank in the world,
/// or with the reason and exit code that it left with. Used by one thread.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Sums x over the group, in place. x: any shape; fp32, fp64, bf16, int32, int64 or uint8. All ranks get
  /// the same bits. Over sockets the order of the sum is that of ranks, or a tree's if the world was made
  /// so, and bf16 is summed in fp32 and
  /// rounded once.
  virtual void all_reduce(Tensor& x) = 0;
  /// The same in the background: nobody reads or writes x until wait().
  virtual std::unique_ptr<Pending> start_all_reduce(Tensor& x);

  /// Copies `in` of every rank to all of them: `out` is size() pieces as large as `in`, in the order of
  /// ranks, and each has the dtype of `in`, whichever that is. `in` may be this rank's piece of `out`, and
  /// otherwise does not overlap it. Exact: bytes are copied. Empty pieces are fine.
  virtual void all_gather(Tensor& out, const Tensor& in) = 0;
  /// The same in the background: nobody writes `in`, or reads or writes `out`, until wait().
  virtual std::unique_ptr<Pending> start_all_gather(Tensor& out, const Tensor& in);

  /// Sums `in` over the group and leaves each rank its piece: `in` is size() pieces as large as `out`, in the
  /// order of ranks. fp32, fp64, bf16, int32, int64 or uint8, the same for both. `out` may be this rank's
  /// piece of `in`, and otherwise does not overlap it. The order of the sum is fixed: the same numbers on the
  /// same ranks give the same bits. Over sockets it is that of all_reduce. Empty pieces are fine.
  virtual void reduce_scatter(Tensor& out, const Tensor& in) = 0;
  /// The same in the background: nobody writes `in`, or reads or writes `out`, until wait().
  virtual std::unique_ptr<Pending> start_reduce_scatter(Tensor& out, const Tensor& in);

  /// Copies x of rank `root` to all.
  virtual void broadcast(Tensor& x, int root) = 0;
  virtual void barrier() = 0;

  /// Not collective: rank `to` of the group, which calls recv, gets a copy of x. Any dtype and shape. Returns
  /// when x may be written again. Messages from one rank to another arrive in the order in which they were
  /// sent. The first one waits until the other rank receives. Two ranks that both send first and receive
  /// afterwards may wait for each other for ever; start_together is for that.
  virtual void send(const Tensor& x, int to) = 0;
  /// Not collective: the other half of send; x has the number of bytes that rank `from` sends.
  virtual void recv(Tensor& x, int from) = 0;

  /// The same in the background: nobody writes x, or reads or writes it, until wait(). Messages of one
  /// direction between two ranks arrive in the order in which they were started, or sent without waiting in
  /// between. Over sockets two ranks may both start to send first. On GPUs the messages of a rank move one
  /// after the other, while its stream computes: all ranks start theirs in an order in which send and recv
  /// would end as well.
  virtual std::unique_ptr<Pending> start_send(const Tensor& x, int to);
  virtual std::unique_ptr<Pending> start_recv(Tensor& x, int from);

  /// Several verbs in the background, one result for each, as one launch on GPUs: none waits for another, so
  /// messages both ways move at the same time, and ranks may list theirs in any order. Collectives are in the
  /// same order on all ranks of the group. All tensors are in host memory, or all on the device.
  virtual std::vector<std::unique_ptr<Pending>> start_together(const std::vector<GroupedCall>& calls);

  /// Collective, with the same pairs of different ranks everywhere, before any message: messages between the
  /// two of a pair then wait for no others of these ranks. Over sockets that is always so; on GPUs each pair
  /// gets a group of NCCL and a stream of its own.
  virtual void connect_pairs(const std::vector<std::pair<int, int>>& /*pairs*/) {}
  /// Not collective: verbs of this group are going to be called with x, whole or in parts, many times. NCCL
  /// then moves its bytes without a copy of its own, until what is returned goes, which is before x and the
  /// group go. Null where nothing is gained. Throws Error (kTopology).
  virtual std::shared_ptr<void> registered(const Tensor& /*x*/) { return nullptr; }

  /// The ranks that call it with the same `colour`, as a group of their own, ordered by `key` and, where keys
  /// are equal, by their rank here. Groups of one world fail together: once a verb of one of them has thrown
  /// because a rank is gone, those of all others throw the same.
  virtual std::unique_ptr<Communicator> split(int colour, int key) = 0;

  /// Not collective: this rank ends because of `error`, and the others, who wait for it, learn why. Returns
  /// what this rank is to end with, so that all end with one code: `error`, or an Error that also says why
  /// others had ended before.
  virtual Error leave(const Error& error) { return error; }

  /// Not collective: throws what the verbs throw when this group, or another of its world, has broken. Called
  /// after waiting for a device and before the numbers that it computed are believed: sums of a broken group
  /// are garbage.
  virtual void check() {}
  /// Not collective: where the verbs of this group are noted.
  virtual NotedGroup noted() const { return {}; }
  /// Not collective, from any thread: whether a rank of the world has left or died.
  virtual bool is_broken() { return false; }
  /// Not collective, for a group that is broken: why, in the words of the rank that left, or naming the one
  /// that is gone. `what`: how this rank noticed.
  virtual Error why_broken(const std::string& what) { return Error(what, ExitCode::kTerminated); }
  /// Not collective: as of Peers. Nothing for a world of one.
  virtual void keep_collectives_in(const std::string&) {}
};

/// How a verb on x is noted; `peer` is a rank of the group.
CollectiveCall call_of(const char* verb, const Tensor& x, int peer = -1);

/// The group that holds this process alone. There is nobody to send to or to receive from: both are an Error.
std::unique_ptr<Communicator> make_world_of_one();

}  // namespace tycho
