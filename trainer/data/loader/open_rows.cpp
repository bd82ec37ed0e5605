// One overload per kind of data.
#include "trainer/data/loader/open_rows.h"

#include <utility>
#include <variant>
#include <vector>

#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/loader/packed_chat_reader.h"
#include "trainer/data/loader/streams_reader.h"
#include "trainer/data/loader/text_dataset.h"
#include "trainer/data/mds/cached_index.h"
#include "trainer/data/mds/cached_source.h"
#include "trainer/data/mds/shard_memory.h"
#include "trainer/data/mds/shard_source.h"
#include "trainer/data/mds/shared_index.h"
#include "trainer/data/mds/token_dataset.h"
#include "trainer/data/token_files/token_files_reader.h"
#include "trainer/recipe/train_config.h"

namespace tycho {
namespace {

MakeShardSource source_of(const MdsConfig& stream, const std::shared_ptr<ShardMemory>& memory) {
  if (stream.remote.empty()) return local_source(stream.verify, RawShards::kInFiles, memory);
  return [verify = stream.verify, spec = cache_spec(stream)](const MdsIndex& index) {
    return make_cached_source(index, verify, spec);
  };
}

/// Returns the memory for decompressed shards. Returns nullptr where ranks share a machine: each would
/// decompress the same shards.
std::shared_ptr<ShardMemory> shard_memory(const MdsConfig& data, const OrderShape& order) {
  if (data.decompress_memory.value == 0 || order.num_ranks > order.num_nodes) return nullptr;
  return std::make_shared<ShardMemory>(data.decompress_memory.value);
}

/// How data is opened, in addition to its config.
struct Opening {
  const RowShape& shape;
  const OpenedData& opened;
  const OrderShape& order;
};

std::unique_ptr<RowReader> open_kind(const MdsConfig& data, const Opening& how) {
  std::vector<std::unique_ptr<RowReader>> streams;
  fetch_indexes({{data}});
  const std::shared_ptr<ShardMemory> memory = shard_memory(data, how.order);
  for (const MdsConfig& stream : data.each_stream())
    streams.push_back(std::make_unique<TokenDataset>(stream, how.shape, source_of(stream, memory),
                                                     shared_mds_index(stream.dir(), stream.decompress_dir)));
  return streams.size() == 1 ? std::move(streams[0])
                             : make_streams_reader(std::move(streams), how.shape.vocab_size);
}

std::unique_ptr<RowReader> open_kind(const ChatConfig& data, const Opening& how) {
  auto examples = open_chat_dataset(data, how.shape, how.opened);
  if (data.packs_batches()) return std::make_unique<PackedChatReader>(std::move(examples), how.order);
  return std::make_unique<ChatReader>(std::move(examples));
}

std::unique_ptr<RowReader> open_kind(const TextConfig& data, const Opening& how) {
  return std::make_unique<TextReader>(open_text_dataset(data, how.shape, how.opened));
}

std::unique_ptr<RowReader> open_kind(const TokenFilesConfig& data, const Opening& how) {
  return open_token_files(data, how.shape);
}

/// Returns the samples of each shard of each stream: those of a reader, unless they are known without one.
template <class Config>
std::vector<ShardSizes> sizes_of(const Config& data, const Opening& how) {
  return open_kind(data, how)->shard_sizes();
}

std::vector<ShardSizes> sizes_of(const MdsConfig& data, const Opening& how) {
  if (data.recut) return open_kind(data, how)->shard_sizes();
  fetch_indexes({{data}});
  std::vector<ShardSizes> sizes;
  for (const MdsConfig& stream : data.each_stream())
    sizes.push_back(shard_sizes(*shared_mds_index(stream.dir(), stream.decompress_dir)));
  return sizes;
}

std::vector<ShardSizes> sizes_of(const ChatConfig& data, const Opening& how) {
  const auto examples = open_chat_dataset(data, how.shape, how.opened);
  const int64_t rows =
      data.packs_batches() ? batch_packing(*examples, how.order).rows_per_epoch() : examples->num_rows();
  return {{static_cast<uint32_t>(rows)}};
}

std::vector<ShardSizes> sizes_of(const TokenFilesConfig& data, const Opening& how) {
  return {{static_cast<uint32_t>(count_token_file_rows(data, how.shape.seq_len))}};
}

}  // namespace

RowShape row_shape(const TrainConfig& config) {
  return {.seq_len = config.seq_len,
          .vocab_size = config.model.vocab_size(),
          .tokenizer = config.tokenizer,
          .marks = reads_input(config.loss.terms(), "weight")};
}

OrderShape order_shape(const TrainConfig& config) {
  return {.global_sequences = global_batch_sequences(config), .seed = static_cast<uint64_t>(config.seed)};
}

std::unique_ptr<RowReader> open_rows(const DataConfig& data, const RowShape& shape, const OpenedData& opened,
                                     const OrderShape& order) {
  return std::visit([&](const auto& kind) { return open_kind(kind, {shape, opened, order}); }, data.value);
}

int64_t count_samples(const DataConfig& data, const RowShape& shape, const OpenedData& opened,
                      const OrderShape& order) {
  auto sizes = std::visit(
      [&](const auto& kind) {
        return sizes_of(kind, {shape, opened, order});
      },
      data.value);
  return data_order(data, std::move(sizes), order).length();
}

}  // namespace tycho
