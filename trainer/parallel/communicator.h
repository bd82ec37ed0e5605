// The only way to other ranks. One implementation today: a world of one that really works.
#pragma once
#include <memory>

#include "trainer/kernels/tensor.h"

namespace tycho {

/// A group of ranks. Every verb is collective: all ranks of the group call it in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sums x over the group, in place. x: any shape, contiguous, on this rank's device.
  virtual void all_reduce(Tensor& x) = 0;
  /// Copies x of rank `root` to all.
  virtual void broadcast(Tensor& x, int root) = 0;
  virtual void barrier() = 0;
};

/// The group that holds this process alone.
std::unique_ptr<Communicator> make_world_of_one();

}  // namespace tycho
