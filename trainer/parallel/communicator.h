// Communication between ranks: a world of one, or several processes (gloo.h).
#pragma once
#include <memory>
#include <string>

#include "trainer/base/error.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// A collective in flight.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Returns when it is done. Throws what the collective throws.
  virtual void wait() = 0;
};

/// A group of ranks. Every function below is collective: all ranks of the group call it in the same order.
/// Throws Error (kTerminated: start again) when a rank has gone, naming it, or with the code that it left
/// with.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sums x over the group, in place. x: any shape, contiguous, not empty, in host memory or on the rank's
  /// device. All ranks get the same bits.
  virtual void all_reduce(Tensor& x) = 0;
  /// The same in the background: nobody reads or writes x until wait().
  virtual std::unique_ptr<Pending> start_all_reduce(Tensor& x);
  /// Copies x of rank `root` to all.
  virtual void broadcast(Tensor& x, int root) = 0;
  virtual void barrier() = 0;
  /// Not collective: tells the other ranks, which wait for this one, that it ends because of `error`.
  virtual void leave(const Error& /*error*/) {}

  /// Not collective: throws what the verbs throw when the group has broken. Called after waiting for a device
  /// and before the numbers that it computed are believed: sums of a broken group are garbage.
  virtual void check() {}
  /// Not collective, from any one thread besides the group's own: whether a rank has left or died. The first
  /// call starts to watch.
  virtual bool is_broken() { return false; }
  /// Not collective, for a group that is broken: why, in the words of the rank that left, or naming the one
  /// that is gone. `what`: how this rank noticed.
  virtual Error why_broken(const std::string& what) { return Error(what, ExitCode::kTerminated); }
};

/// The group that holds this process alone.
std::unique_ptr<Communicator> make_world_of_one();

}  // namespace tycho
