// The shuffles of mosaicml-streaming 0.12 and 0.13, equal in every id.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/data/order/id_stream.h"
#include "trainer/data/order/order_marks.h"
#include "trainer/data/order/shuffle_parameters.h"

namespace tycho {

/// Returns the ids of each canonical node in their order; together they are 0, 1, … up to the sum of
/// `unit_sizes`, which must be less than 2^32 and at least the number of nodes. A unit is a shard, or one
/// pass over it. py1s, py2s, py1br and py1e need memory for a shard or a few blocks per node, naive 4 bytes
/// per id. py1br requires block_size >= 2. Marks of this shuffle among `known` make skipping quicker; others
/// are ignored.
std::vector<std::unique_ptr<IdStream>> shuffled_nodes(std::span<const uint32_t> unit_sizes,
                                                      const Shuffle& shuffle, const OrderMarks& known = {});
/// Returns the marks of this shuffle, which are drawn unless they are among `known`. Returns none for naive,
/// and where drawing takes less time than from one mark to the next.
OrderMarks shuffle_marks(std::span<const uint32_t> unit_sizes, const Shuffle& shuffle,
                         const OrderMarks& known = {});
/// Returns the ids of each canonical node, not shuffled.
std::vector<std::unique_ptr<IdStream>> nodes_in_order(int64_t num_ids, int64_t num_canonical_nodes);

}  // namespace tycho
