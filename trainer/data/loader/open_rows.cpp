// One case per kind of data.
#include "trainer/data/loader/open_rows.h"

#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/loader/packed_chat_reader.h"
#include "trainer/data/loader/streams_reader.h"
#include "trainer/data/loader/text_dataset.h"
#include "trainer/data/mds/cached_index.h"
#include "trainer/data/mds/cached_source.h"
#include "trainer/data/mds/shard_memory.h"
#include "trainer/data/mds/shard_source.h"
#include "trainer/data/mds/token_dataset.h"
#include "trainer/data/token_files/token_files_reader.h"

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

std::unique_ptr<RowReader> open_mds(const MdsConfig& data, const RowShape& shape, const OrderShape& order) {
  std::vector<std::unique_ptr<RowReader>> streams;
  fetch_indexes({{data}});
  const std::shared_ptr<ShardMemory> memory = shard_memory(data, order);
  for (const MdsConfig& stream : data.each_stream())
    streams.push_back(std::make_unique<TokenDataset>(stream, shape, source_of(stream, memory)));
  return streams.size() == 1 ? std::move(streams[0])
                             : make_streams_reader(std::move(streams), shape.vocab_size);
}

std::unique_ptr<RowReader> open_chat(const ChatConfig& data, const RowShape& shape, const OrderShape& order) {
  auto examples = open_chat_dataset(data, shape);
  if (data.packs_batches()) return std::make_unique<PackedChatReader>(std::move(examples), order);
  return std::make_unique<ChatReader>(std::move(examples));
}

}  // namespace

std::unique_ptr<RowReader> open_rows(const DataConfig& data, const RowShape& shape, const OrderShape& order) {
  if (data.is<ChatConfig>()) return open_chat(data.as<ChatConfig>(), shape, order);
  if (data.is<TextConfig>())
    return std::make_unique<TextReader>(open_text_dataset(data.as<TextConfig>(), shape));
  if (data.is<TokenFilesConfig>()) return open_token_files(data.as<TokenFilesConfig>(), shape);
  return open_mds(data.as<MdsConfig>(), shape, order);
}

int64_t count_samples(const DataConfig& data, const RowShape& shape, const OrderShape& order) {
  std::vector<ShardSizes> sizes;
  if (data.is<ChatConfig>()) {
    const auto& config = data.as<ChatConfig>();
    const auto examples = open_chat_dataset(config, shape);
    const int64_t rows =
        config.packs_batches() ? batch_packing(*examples, order).rows_per_epoch() : examples->num_rows();
    sizes = {{static_cast<uint32_t>(rows)}};
  } else if (data.is<TextConfig>()) {
    const int64_t rows = open_text_dataset(data.as<TextConfig>(), shape)->num_rows();
    sizes = {{static_cast<uint32_t>(rows)}};
  } else if (data.is<TokenFilesConfig>()) {
    const int64_t rows = count_token_file_rows(data.as<TokenFilesConfig>(), shape.seq_len);
    sizes = {{static_cast<uint32_t>(rows)}};
  } else if (data.as<MdsConfig>().recut) {
    sizes = open_mds(data.as<MdsConfig>(), shape, order)->shard_sizes();
  } else {
    fetch_indexes(data);
    for (const MdsConfig& stream : data.as<MdsConfig>().each_stream())
      sizes.push_back(shard_sizes(read_mds_index(stream.dir())));
  }
  return data_order(data, std::move(sizes), order).length();
}

}  // namespace tycho
