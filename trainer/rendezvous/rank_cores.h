// How many CPU cores a rank may compute on. Torch-free.
#pragma once
#include "trainer/rendezvous/rank_place.h"

namespace tycho {

/// Cores that this process may run on.
int usable_cores();

/// Those of one rank, at least 1: its own when a scheduler bound it to some, else an equal share of what the
/// ranks of its machine have together.
int cores_of_rank(const RankPlace& place);

}  // namespace tycho
