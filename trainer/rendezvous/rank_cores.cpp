// Ranks that Tycho started share its cores; a scheduler may have bound each to a part of the machine.
#include "trainer/rendezvous/rank_cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

namespace tycho {

int usable_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

int cores_of_rank(const RankPlace& place) {
  const int usable = usable_cores();
  if (place.num_local_ranks == 1) return usable;
  // Ranks that Tycho started share what it had. A scheduler may have bound each to a part of the machine.
  const auto share_of_machine = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) / place.num_local_ranks;
  const bool bound = place.source != "tycho launch" && usable <= share_of_machine;
  return bound ? usable : std::max(1, usable / place.num_local_ranks);
}

int threads_of_rank(int64_t wanted, const RankPlace& place) {
  return wanted > 0 ? static_cast<int>(wanted) : cores_of_rank(place);
}

}  // namespace tycho
