// The shuffle py1e: spreads the samples of a shard at random around the shard's position.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/data/order/id_stream.h"
#include "trainer/data/order/order_marks.h"
#include "trainer/data/order/shuffle_parameters.h"

namespace tycho {

/// Makes the streams of shuffled_nodes() for py1e, with the marks of `book`.
std::vector<std::unique_ptr<IdStream>> py1e_nodes(std::span<const uint32_t> unit_sizes,
                                                  const Shuffle& shuffle, MarkBook& book);

}  // namespace tycho
