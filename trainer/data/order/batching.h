// Combines the orders of streams into global batches: the batching methods of mosaicml-streaming.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/data/order/epoch_samples.h"
#include "trainer/data/order/flat_order.h"
#include "trainer/data/order/id_stream.h"

namespace tycho {

/// Order of a stream, and the stored samples that its ids stand for.
struct OrderedStream {
  std::unique_ptr<IdStream> ids;
  std::shared_ptr<const EpochSamples> samples;
};

/// All of these are read in whole global batches, which hold the samples of one rank after the other, and
/// skipped by whole batches (pooled_batches: by any number).

/// "random": batches in the order of the stream, dealt to the ranks of the grid one by one.
std::unique_ptr<IdStream> pooled_batches(OrderedStream stream, const RankGrid& grid);
/// "stratified": parts[i] samples of stream i in each batch.
std::unique_ptr<IdStream> stratified_batches(std::vector<OrderedStream> streams, std::vector<int64_t> parts);
/// "per_stream": all samples of batch b come from stream labels[b], dealt as by pooled_batches.
std::unique_ptr<IdStream> stream_batches(std::vector<OrderedStream> streams, std::vector<uint16_t> labels,
                                         int64_t batch, const RankGrid& grid);
/// "device_per_stream": labels[node][j] is the stream of the j-th batch of a rank of that node's canonical
/// nodes. `streams`: their flat orders for a grid of as many nodes as there are canonical ones.
std::unique_ptr<IdStream> device_batches(std::vector<OrderedStream> streams,
                                         std::vector<std::vector<uint16_t>> labels, int64_t rank_batch,
                                         int64_t num_canonical_nodes, const RankGrid& grid);

}  // namespace tycho
