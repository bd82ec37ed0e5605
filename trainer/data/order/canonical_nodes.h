// Canonical nodes: the equal parts of an epoch that mosaicml-streaming shuffles separately, so that the order
// does not depend on the number of nodes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/data/order/numpy_rng.h"

namespace tycho {

/// Ids that come from one shard: [begin, end).
struct IdSpan {
  uint32_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};

using NodeSpans = std::vector<IdSpan>;

/// Divides ids 0, 1, … into units of these sizes.
std::vector<IdSpan> unit_spans(std::span<const uint32_t> unit_sizes);
std::vector<uint32_t> sizes_of(const std::vector<IdSpan>& spans);
/// Cuts spans at n * p / num_nodes of all their n ids, keeping their order.
std::vector<NodeSpans> divide_spans(const std::vector<IdSpan>& spans, int64_t num_nodes);
/// Shuffles units by default_rng(seed), cuts them into nodes, and then shuffles the spans of each node in
/// turn by `epoch_rng`. py1s, py1br and py1e begin with this step.
std::vector<NodeSpans> shuffled_node_spans(std::span<const uint32_t> unit_sizes, int64_t num_nodes,
                                           uint64_t seed, NumpyRng& epoch_rng);

}  // namespace tycho
