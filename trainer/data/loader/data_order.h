// The order of samples that a recipe asks for.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/chat_config.h"
#include "trainer/data/config.h"
#include "trainer/data/order/epoch_samples.h"
#include "trainer/data/order/id_stream.h"
#include "trainer/data/order/sample_order.h"

namespace tycho {

/// What the order of samples depends on beside the data and its config.
struct OrderShape {
  int64_t global_sequences = 1;
  int64_t num_ranks = 1, num_machines = 1;
  uint64_t seed = 0;  // used when the config has no shuffle_seed
};

/// The machines of OrderShape, where `num_ranks` on `num_machines` are `num_data_ranks` with samples of their
/// own: those that mosaicml-streaming counts with its `replication`.
int64_t machines_of_data_ranks(int64_t num_data_ranks, int64_t num_ranks, int64_t num_machines);

/// `shard_sizes`: RowReader's. Throws as SampleOrder does. Ranks and machines count only where the config
/// says so: compat = "streaming" and batching_method = "device_per_stream".
SampleOrder data_order(const DataConfig& data, std::vector<ShardSizes> shard_sizes, const OrderShape& shape);

/// The rows of an epoch, from its beginning: as they are, or in buckets of similar lengths where the recipe
/// wants these. `lengths`: RowReader::trimmed_lengths, which outlive the stream.
std::unique_ptr<IdStream> bucketed_rows(std::unique_ptr<IdStream> rows, const DataConfig& data,
                                        std::span<const int32_t> lengths, const OrderShape& shape,
                                        int64_t epoch);

/// Whether all samples are shuffled as one list although the data could have another order.
bool shuffles_one_list(const DataConfig& data);
/// What that takes with so many samples; "" where it is little. It begins with the value of shuffle_algo.
std::string one_list_warning(const DataConfig& data, int64_t num_samples);

/// The order in which examples are packed batch by batch; that of the rows is then the one they are made in.
SampleOrder example_order(const ChatConfig& data, int64_t num_examples, const OrderShape& shape);

}  // namespace tycho
