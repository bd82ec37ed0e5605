// Checks of a collective that one rank can make before anything is sent, shared by all communicators.
#pragma once
#include "trainer/comm/communicator.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

// All functions throw Error with the op, what it expected and what it got.

/// Checks that x is defined and contiguous.
void check_whole(const char* op, const Tensor& x);
/// Checks that x is defined and contiguous, and has a dtype that can be summed.
void check_sum(const char* op, const Tensor& x);
void check_all_gather(const Tensor& out, const Tensor& in, const Communicator& group);
void check_reduce_scatter(const Tensor& out, const Tensor& in, const Communicator& group);
void check_broadcast(const Tensor& x, int root, const Communicator& group);
/// Checks send and recv: `peer` must be another rank of the group.
void check_message(const char* op, const Tensor& x, int peer, const Communicator& group);

}  // namespace tycho
