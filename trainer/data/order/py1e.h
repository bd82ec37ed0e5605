// The shuffle py1e: the samples of a shard spread at random around its place.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/data/order/id_stream.h"
#include "trainer/data/order/order_marks.h"
#include "trainer/data/order/shuffle.h"

namespace tycho {

/// Makes the streams of shuffled_nodes() for py1e, with the marks of `book`.
std::vector<std::unique_ptr<IdStream>> py1e_nodes(std::span<const uint32_t> unit_sizes,
                                                  const Shuffle& shuffle, MarkBook& book);

}  // namespace tycho
