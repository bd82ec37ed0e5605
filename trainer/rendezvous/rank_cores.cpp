// Ranks that Tycho started share its cores; a scheduler may have bound each to a part of the machine.
#include "trainer/rendezvous/rank_cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace tycho {
namespace {

/// Returns the number of CPUs that Slurm allocated to this step on this node, for all of its tasks; no limit
/// outside of a job.
int allocated_cpus(const Environment& variable) {
  const std::string text = variable("SLURM_CPUS_ON_NODE").value_or("");
  int cpus = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpus);
  const bool is_count = error == std::errc() && end == text.data() + text.size() && cpus > 0;
  return is_count ? cpus : std::numeric_limits<int>::max();
}

/// Returns the number of cores that the kernel lets this rank use, divided among the ranks of the machine
/// where they share them.
int bound_cores(const RankInfo& place) {
  const int usable = usable_cores();
  if (place.num_local_ranks == 1) return usable;
  // Ranks that Tycho started share its cores. A scheduler may have bound each to a part of the machine.
  const auto share_of_machine = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) / place.num_local_ranks;
  const bool bound = place.source != "tycho launch" && usable <= share_of_machine;
  return bound ? usable : std::max(1, usable / place.num_local_ranks);
}

}  // namespace

int usable_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

int cores_of_rank(const RankInfo& place, const Environment& variable) {
  const int allocated = std::max(1, allocated_cpus(variable) / place.num_local_ranks);
  return std::min(bound_cores(place), allocated);
}

int threads_of_rank(int64_t wanted, const RankInfo& place) {
  return wanted > 0 ? static_cast<int>(wanted) : cores_of_rank(place);
}

}  // namespace tycho
