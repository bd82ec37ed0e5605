// The shuffle py2s: shards shuffled once for the run, then cut and shuffled again each epoch.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/data/order/id_stream.h"
#include "trainer/data/order/order_marks.h"
#include "trainer/data/order/shuffle_parameters.h"

namespace tycho {

/// Makes the streams of shuffled_nodes() for py2s, with the marks of `book`.
std::vector<std::unique_ptr<IdStream>> py2s_nodes(std::span<const uint32_t> unit_sizes,
                                                  const Shuffle& shuffle, MarkBook& book);

}  // namespace tycho
