// Packing needs only lengths, so a whole epoch is packed at once; batches of tokens are assembled one by one.
#include "trainer/data/loader/packed_chat_reader.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/chat/packing_ratio.h"

namespace tycho {
namespace {

/// Returns the lengths of the examples that a group gets in the first epoch. As in LLM Foundry, the first
/// examples are repeated at the end where the groups would not get equally many.
std::vector<int32_t> lengths_of_group(const std::vector<uint32_t>& order, std::span<const int32_t> lengths,
                                      size_t group, size_t num_groups) {
  std::vector<int32_t> own;
  const size_t padded = (order.size() + num_groups - 1) / num_groups * num_groups;
  for (size_t i = group; i < padded; i += num_groups) own.push_back(lengths[order[i % order.size()]]);
  return own;
}

double find_ratio(const ChatDataset& data, const OrderShape& shape, const BatchPacking& packing) {
  std::vector<uint32_t> order(data.lengths().size());
  example_order(data.config(), data.shard_sizes(), shape).epoch(0)->read(order);
  double least = std::numeric_limits<double>::infinity();
  for (int64_t group = 0; group < packing.num_groups; ++group) {
    const std::vector<int32_t> lengths = lengths_of_group(order, data.lengths(), static_cast<size_t>(group),
                                                          static_cast<size_t>(packing.num_groups));
    least = std::min(least, find_packing_ratio(lengths, {packing.group_rows, data.seq_len()}));
  }
  return least;
}

}  // namespace

BatchPacking batch_packing(const ChatDataset& data, const OrderShape& shape) {
  const ChatConfig& config = data.config();
  BatchPacking packing{.num_groups = config.packing_groups};
  if (shape.global_sequences % packing.num_groups != 0)
    fail(ExitCode::kRecipe,
         "[data] packing_groups = {} of {} cannot divide a global batch of {} sequences: write a number that "
         "does",
         packing.num_groups, config.path, shape.global_sequences);
  packing.group_rows = shape.global_sequences / packing.num_groups;
  packing.ratio =
      config.packing_ratio->is_auto ? find_ratio(data, shape, packing) : config.packing_ratio->value;
  packing.group_examples = examples_per_batch(packing.ratio, packing.group_rows);
  const int64_t batch = packing.group_examples * packing.num_groups;
  packing.num_batches = std::ssize(data.lengths()) / batch;
  if (packing.num_batches == 0)
    fail(ExitCode::kUnusable,
         "[data] {} has {} examples, and a batch is packed from {}: write a smaller packing_ratio or "
         "global_batch, or use more data",
         config.path, data.lengths().size(), batch);
  return packing;
}

PackedChatReader::PackedChatReader(std::shared_ptr<const ChatDataset> data, const OrderShape& shape)
    : data_(std::move(data)),
      packing_(batch_packing(*data_, shape)),
      order_(example_order(data_->config(), data_->shard_sizes(), shape)) {
  start_epoch(0);
}

void PackedChatReader::start_epoch(int64_t epoch) {
  if (epoch == epoch_) return;
  if (epoch < epoch_ || epoch_ < 0) {
    packers_.assign(static_cast<size_t>(packing_.num_groups),
                    BatchPacker(packing_.group_rows, data_->seq_len(), data_->config().max_leftover_rows));
    epoch_ = -1;
  }
  while (epoch_ < epoch) pack_next_epoch();
}

void PackedChatReader::pack_next_epoch() {
  rows_.clear();
  const std::unique_ptr<IdStream> order = order_.epoch(++epoch_);
  const auto groups = static_cast<size_t>(packing_.num_groups);
  std::vector<uint32_t> batch(groups * static_cast<size_t>(packing_.group_examples)), own;
  for (int64_t b = 0; b < packing_.num_batches; ++b) {
    order->read(batch);
    for (size_t group = 0; group < groups; ++group) {
      own.clear();
      for (size_t i = group; i < batch.size(); i += groups) own.push_back(batch[i]);
      if (packing_.ratio == 1) {  // LLM Foundry packs nothing then
        for (const uint32_t example : own) rows_.push_back({example});
        continue;
      }
      for (auto& row : packers_[group].pack(own, data_->lengths())) rows_.push_back(std::move(row));
    }
  }
}

Batch PackedChatReader::read_batch(std::span<const uint32_t> samples, int64_t num_sequences) {
  std::vector<std::span<const uint32_t>> rows;
  for (const uint32_t sample : samples) rows.push_back(row(sample));
  return data_->read_rows(rows, num_sequences, data_->seq_len());
}

int64_t PackedChatReader::waiting_examples() const {
  return std::accumulate(
      packers_.begin(), packers_.end(), int64_t{0},
      [](int64_t sum, const BatchPacker& packer) { return sum + packer.waiting_examples(); });
}

int64_t PackedChatReader::lost_examples() const {
  return std::accumulate(packers_.begin(), packers_.end(), int64_t{0},
                         [](int64_t sum, const BatchPacker& packer) { return sum + packer.lost_examples(); });
}

}  // namespace tycho
