// The key-value store at which the ranks of a job meet: rank 0 serves it.
#pragma once
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "trainer/rendezvous/rank_place.h"

namespace tycho {

/// Whether all ranks of the run are on this machine: they then talk over its loopback.
bool on_one_machine(const RankPlace& place);

/// The keys of one job, told apart from those of others by its token. Throws Error (kTopology) when rank 0
/// cannot listen, or cannot be reached within `join_s`.
c10::intrusive_ptr<c10d::Store> open_store(const RankPlace& place, double join_s);

}  // namespace tycho
