// The ids of an epoch in the order in which batches take them: one canonical node after the other in turn.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/data/order/id_stream.h"

namespace tycho {

/// Number of nodes of a cluster and of ranks on each. A grid of one rank makes an order that does not depend
/// on them.
struct RankGrid {
  int64_t nodes = 1, ranks_per_node = 1;
  int64_t num_ranks() const { return nodes * ranks_per_node; }
};

/// Returns the length of the order. Ids are repeated at the end where canonical nodes are not equally long,
/// and where the ranks of the grid would not get equally many.
int64_t flat_size(int64_t num_ids, int64_t num_canonical_nodes, const RankGrid& grid);

/// Makes mosaicml-streaming's partition "orig", before it is dealt to ranks. Its i-th id belongs to node i %
/// nodes and there to rank i / nodes % ranks_per_node. `streams`: of the canonical nodes, as shuffled_nodes()
/// cuts them. Requires that either of grid.nodes and the number of canonical nodes divides the other, and
/// that there are more ids than either.
std::unique_ptr<IdStream> make_flat_order(std::vector<std::unique_ptr<IdStream>> streams, int64_t num_ids,
                                          const RankGrid& grid);

}  // namespace tycho
