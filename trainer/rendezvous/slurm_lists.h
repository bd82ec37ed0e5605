// Slurm's short forms of host lists and counts.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

/// Returns the hosts of a list, in its order: "node[001-003,7],gpu3" is node001, node002, node003, node7,
/// gpu3. A name may have up to four brackets. Throws Error (kTopology) on other text and on more than 65,536
/// hosts.
std::vector<std::string> expand_slurm_hosts(std::string_view list);

/// Returns one count per node: "2(x3),1" is 2, 2, 2, 1. Throws Error (kTopology) on other text and on more
/// than 65,536 nodes.
std::vector<int> expand_slurm_counts(std::string_view list);

}  // namespace tycho
