// The order of samples that a recipe asks for.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/order/epoch_samples.h"
#include "trainer/data/order/id_stream.h"
#include "trainer/data/order/sample_order.h"
#include "trainer/recipe/chat_data.h"
#include "trainer/recipe/data.h"

namespace tycho {

/// Properties of the run that the order of samples depends on, in addition to the data and its config.
struct OrderShape {
  int64_t global_sequences = 1;
  int64_t num_ranks = 1, num_nodes = 1;
  uint64_t seed = 0;  // used when the config has no shuffle_seed
};

/// Returns OrderShape::num_nodes if `num_ranks` on `num_nodes` have `num_data_ranks` with samples of
/// their own: the machines that mosaicml-streaming counts with its `replication`.
int64_t nodes_of_data_ranks(int64_t num_data_ranks, int64_t num_ranks, int64_t num_nodes);

/// Returns the order of samples. `shard_sizes`: result of RowReader::shard_sizes. Throws as SampleOrder does.
/// Ranks and machines matter only with compat = "streaming" and batching_method = "device_per_stream", and to
/// finetuning rows of MDS with compat = "composer" on several machines.
SampleOrder data_order(const DataConfig& data, std::vector<ShardSizes> shard_sizes, const OrderShape& shape);

/// Returns the rows of an epoch from its beginning, in buckets of similar lengths if the recipe asks for
/// these. `lengths`: RowReader::trimmed_lengths, which must outlive the stream.
std::unique_ptr<IdStream> bucketed_rows(std::unique_ptr<IdStream> rows, const DataConfig& data,
                                        std::span<const int32_t> lengths, const OrderShape& shape,
                                        int64_t epoch);

/// True if all samples are shuffled as one list although the data could have another order.
bool shuffles_one_list(const DataConfig& data);
/// Warning about the memory and time that shuffling so many samples as one list takes; "" if they are few.
/// The text begins with the value of shuffle_algo.
std::string one_list_warning(const DataConfig& data, int64_t num_samples);

/// Returns the order in which examples are packed batch by batch. Rows are then read in the order in which
/// they are packed.
/// `examples`: result of ChatDataset::shard_sizes.
SampleOrder example_order(const ChatConfig& data, ShardSizes examples, const OrderShape& shape);

}  // namespace tycho
