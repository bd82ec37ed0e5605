// Cuts and shuffles spans of ids.
#include "trainer/data/order/canonical_nodes.h"

#include <algorithm>

namespace tycho {

std::vector<IdSpan> unit_spans(std::span<const uint32_t> unit_sizes) {
  std::vector<IdSpan> spans;
  spans.reserve(unit_sizes.size());
  uint32_t begin = 0;
  for (const uint32_t size : unit_sizes) {
    spans.push_back({begin, begin + size});
    begin += size;
  }
  return spans;
}

std::vector<uint32_t> sizes_of(const std::vector<IdSpan>& spans) {
  std::vector<uint32_t> sizes;
  sizes.reserve(spans.size());
  for (const IdSpan& span : spans) sizes.push_back(static_cast<uint32_t>(span.size()));
  return sizes;
}

std::vector<NodeSpans> divide_spans(const std::vector<IdSpan>& spans, int64_t num_nodes) {
  int64_t all = 0;
  for (const IdSpan& span : spans) all += static_cast<int64_t>(span.size());
  std::vector<NodeSpans> nodes(static_cast<size_t>(num_nodes));
  size_t at = 0;
  int64_t so_far = 0;
  IdSpan rest = spans.empty() ? IdSpan{} : spans[0];
  for (int64_t node = 0; node < num_nodes; ++node) {
    const int64_t end = all * (node + 1) / num_nodes;
    while (so_far < end) {
      const auto take = std::min<int64_t>(static_cast<int64_t>(rest.size()), end - so_far);
      nodes[static_cast<size_t>(node)].push_back({rest.begin, rest.begin + static_cast<uint32_t>(take)});
      rest.begin += static_cast<uint32_t>(take);
      so_far += take;
      if (rest.size() == 0 && ++at < spans.size()) rest = spans[at];
    }
  }
  return nodes;
}

std::vector<NodeSpans> shuffled_node_spans(std::span<const uint32_t> unit_sizes, int64_t num_nodes,
                                           uint64_t seed, NumpyRng& epoch_rng) {
  std::vector<IdSpan> spans = unit_spans(unit_sizes);
  NumpyRng(seed).shuffle(std::span(spans));
  std::vector<NodeSpans> nodes = divide_spans(spans, num_nodes);
  for (NodeSpans& node : nodes) epoch_rng.shuffle(std::span(node));
  return nodes;
}

}  // namespace tycho
