// What one rank can see to be wrong with a verb before anything is sent: the same for every communicator.
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/parallel/communicator.h"

namespace tycho {

// Each throws Error with the verb, what it wanted and what it was given.

/// x is there and contiguous.
void check_whole(const char* verb, const Tensor& x);
/// x is whole and can be summed.
void check_sum(const char* verb, const Tensor& x);
void check_all_gather(const Tensor& out, const Tensor& in, const Communicator& group);
void check_reduce_scatter(const Tensor& out, const Tensor& in, const Communicator& group);
void check_broadcast(const Tensor& x, int root, const Communicator& group);
/// For send and recv: `peer` is another rank of the group.
void check_message(const char* verb, const Tensor& x, int peer, const Communicator& group);

}  // namespace tycho
