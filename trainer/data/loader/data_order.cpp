// Makes an OrderSpec from the keys of a recipe, with the defaults of mosaicml-streaming.
#include "trainer/data/loader/data_order.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/data/chat/mds_rows.h"
#include "trainer/data/order/length_buckets.h"

namespace tycho {
namespace {

uint64_t seed_of(std::optional<int64_t> seed, const OrderShape& shape) {
  return seed ? static_cast<uint64_t>(*seed) : shape.seed;
}

/// Returns the grid of ranks that batches are arranged for.
RankGrid grid_of(const MdsConfig& data, const OrderShape& shape) {
  if (data.compat == OrderCompat::kStreaming) {
    const int64_t machines = nodes_of_data_ranks(shape.num_ranks, shape.num_ranks, shape.num_nodes);
    return {machines, shape.num_ranks / machines};
  }
  if (data.batching_method == BatchingMethod::kDevicePerStream) return {1, shape.num_ranks};
  return {};
}

int64_t canonical_nodes(const MdsConfig& data, const RankGrid& grid) {
  if (data.num_canonical_nodes) return *data.num_canonical_nodes;
  const bool many = data.shuffle_algo == ShuffleAlgo::kPy1s || data.shuffle_algo == ShuffleAlgo::kPy2s;
  return (many ? 64 : 1) * grid.nodes;
}

OrderSpec spec_of(const MdsConfig& data, const OrderShape& shape) {
  constexpr int64_t kBlocks = 4'000'000, kLeastBlock = 1 << 18;
  OrderSpec spec;
  for (const StreamConfig& stream : data.streams) {
    spec.weights.push_back({stream.proportion, stream.repeat, stream.choose});
    spec.names.push_back(stream.name);
  }
  if (data.streams.empty()) {
    spec.weights.emplace_back();
    spec.names.push_back(data.place());
  }
  spec.shuffle = data.shuffle;
  spec.algo = data.shuffle_algo;
  spec.seed = seed_of(data.shuffle_seed, shape);
  spec.grid = grid_of(data, shape);
  spec.num_canonical_nodes = canonical_nodes(data, spec.grid);
  spec.block_size =
      data.shuffle_block_size.value_or(std::max(kBlocks / spec.num_canonical_nodes, kLeastBlock));
  spec.sampling = data.sampling_method;
  spec.granularity = data.sampling_granularity;
  spec.epoch_size = data.epoch_size;
  spec.batching = data.batching_method;
  return spec;
}

/// Returns the order of kinds of data with only one: samples are shuffled as one list.
template <class Config>
OrderSpec spec_of(const Config& data, const OrderShape& shape) {
  OrderSpec spec;
  spec.weights.emplace_back();
  spec.names.push_back(data.place());
  spec.shuffle = data.shuffle;
  spec.seed = seed_of(data.shuffle_seed, shape);
  return spec;
}

/// Returns the order of examples. With compat = "composer", rows of MDS have that of mosaicml-streaming, as
/// LLM Foundry asks for it, and other rows that of PyTorch's DistributedSampler. On one machine neither
/// depends on the number of ranks. Rows that are packed batch by batch have that of one machine.
OrderSpec example_spec(const ChatConfig& data, const OrderShape& shape) {
  const bool packs_once = data.pack && !data.packs_batches();
  OrderSpec list = spec_of<ChatConfig>(data, shape);
  if (data.compat != ChatCompat::kComposer || packs_once) return list;
  if (!has_mds_rows(data)) {
    list.as_torch = true;
    return list;
  }
  MdsConfig rows;
  const bool has_machines = nodes_of_data_ranks(shape.num_ranks, shape.num_ranks, shape.num_nodes) > 1;
  if (has_machines && !data.packs_batches()) rows.compat = OrderCompat::kStreaming;
  rows.local_dir = data.path;
  rows.shuffle = data.shuffle;
  rows.shuffle_algo = ShuffleAlgo::kPy1e;
  rows.shuffle_seed = data.shuffle_seed;
  return spec_of(rows, shape);
}

/// Rows that are packed batch by batch are read as they were packed.
OrderSpec spec_of(const ChatConfig& data, const OrderShape& shape) {
  if (!data.packs_batches()) return example_spec(data, shape);
  OrderSpec spec = spec_of<ChatConfig>(data, shape);
  spec.shuffle = false;
  return spec;
}

}  // namespace

bool shuffles_one_list(const DataConfig& data) {
  const auto* mds = std::get_if<MdsConfig>(&data.value);
  return mds != nullptr && mds->shuffle && mds->shuffle_algo == ShuffleAlgo::kNaive;
}

std::string one_list_warning(const DataConfig& data, int64_t num_samples) {
  constexpr int64_t kMany = 50'000'000;
  if (!shuffles_one_list(data) || num_samples <= kMany) return "";
  constexpr double kSecondsEach = 1e-8;  // bench/results/sample_order.md
  return fmt::format(
      "\"naive\" shuffles {:.3g} million samples of {} as one list: {} in every process, and {:.1f} s "
      "whenever "
      "a run starts or resumes. shuffle_algo = \"py1s\" or \"py1e\" needs neither; its order is another one",
      static_cast<double>(num_samples) / 1e6, data.place(),
      human_bytes(4.0 * static_cast<double>(num_samples)), kSecondsEach * static_cast<double>(num_samples));
}

int64_t nodes_of_data_ranks(int64_t num_data_ranks, int64_t num_ranks, int64_t num_nodes) {
  // Ranks that are not spread evenly count as one machine.
  if (num_ranks % num_nodes != 0) return 1;
  const int64_t ranks_of_node = num_ranks / num_nodes;
  return num_data_ranks % ranks_of_node == 0 ? num_data_ranks / ranks_of_node : 1;
}

SampleOrder example_order(const ChatConfig& data, ShardSizes examples, const OrderShape& shape) {
  OrderSpec spec = example_spec(data, shape);
  spec.streams = {std::move(examples)};
  return SampleOrder(std::move(spec));
}

std::unique_ptr<IdStream> bucketed_rows(std::unique_ptr<IdStream> rows, const DataConfig& data,
                                        std::span<const int32_t> lengths, const OrderShape& shape,
                                        int64_t epoch) {
  const auto* chat = std::get_if<ChatConfig>(&data.value);
  if (chat == nullptr || chat->bucket_batches == 1) return rows;
  return in_length_buckets(std::move(rows), lengths,
                           {.window_batches = chat->bucket_batches,
                            .batch_rows = shape.global_sequences,
                            .num_rows = std::ssize(lengths),
                            .seed = seed_of(chat->shuffle_seed, shape),
                            .epoch = epoch});
}

SampleOrder data_order(const DataConfig& data, std::vector<ShardSizes> shard_sizes, const OrderShape& shape) {
  OrderSpec spec = std::visit([&](const auto& config) { return spec_of(config, shape); }, data.value);
  spec.streams = std::move(shard_sizes);
  spec.global_sequences = shape.global_sequences;
  return SampleOrder(std::move(spec));
}

}  // namespace tycho
