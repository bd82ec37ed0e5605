// One stream of batches for each method.
#include "trainer/data/order/batching.h"

#include <algorithm>
#include <deque>
#include <span>
#include <utility>

namespace tycho {
namespace {

void read_stored(OrderedStream& stream, std::span<uint32_t> out) {
  stream.ids->read(out);
  stream.samples->to_stored(out);
}

/// Deals a batch to nodes and then to the ranks of each, and puts it into the order of ranks.
void deal(std::span<uint32_t> batch, const RankGrid& grid, std::vector<uint32_t>& dealt) {
  if (grid.num_ranks() == 1) return;
  dealt.assign(batch.begin(), batch.end());
  const auto nodes = static_cast<size_t>(grid.nodes), ranks = static_cast<size_t>(grid.ranks_per_node);
  const size_t each = batch.size() / (nodes * ranks);
  for (size_t i = 0; i < batch.size(); ++i)
    batch[(i % nodes * ranks + i / nodes % ranks) * each + i / nodes / ranks] = dealt[i];
}

class PooledBatches final : public IdStream {
 public:
  PooledBatches(OrderedStream stream, const RankGrid& grid) : stream_(std::move(stream)), grid_(grid) {}
  void skip(int64_t count) override { stream_.ids->skip(count); }
  void read(std::span<uint32_t> batch) override {
    read_stored(stream_, batch);
    deal(batch, grid_, dealt_);
  }

 private:
  OrderedStream stream_;
  RankGrid grid_;
  std::vector<uint32_t> dealt_;
};

class StratifiedBatches final : public IdStream {
 public:
  StratifiedBatches(std::vector<OrderedStream> streams, std::vector<int64_t> parts)
      : streams_(std::move(streams)), parts_(std::move(parts)) {
    for (const int64_t part : parts_) batch_ += part;
  }
  void skip(int64_t count) override {
    for (size_t i = 0; i < streams_.size(); ++i) streams_[i].ids->skip(count / batch_ * parts_[i]);
  }
  void read(std::span<uint32_t> batch) override {
    for (size_t i = 0; i < streams_.size(); ++i) {
      read_stored(streams_[i], batch.first(static_cast<size_t>(parts_[i])));
      batch = batch.subspan(static_cast<size_t>(parts_[i]));
    }
  }

 private:
  std::vector<OrderedStream> streams_;
  std::vector<int64_t> parts_;
  int64_t batch_ = 0;
};

class StreamBatches final : public IdStream {
 public:
  StreamBatches(std::vector<OrderedStream> streams, std::vector<uint16_t> labels, int64_t batch,
                const RankGrid& grid)
      : streams_(std::move(streams)), labels_(std::move(labels)), batch_(batch), grid_(grid) {}
  void skip(int64_t count) override {
    std::vector<int64_t> skipped(streams_.size());
    for (; count >= batch_; count -= batch_) skipped[labels_[at_++]] += batch_;
    for (size_t i = 0; i < streams_.size(); ++i) streams_[i].ids->skip(skipped[i]);
  }
  void read(std::span<uint32_t> batch) override {
    read_stored(streams_[labels_[at_++]], batch);
    deal(batch, grid_, dealt_);
  }

 private:
  std::vector<OrderedStream> streams_;
  std::vector<uint16_t> labels_;
  size_t at_ = 0;
  int64_t batch_;
  RankGrid grid_;
  std::vector<uint32_t> dealt_;
};

/// Each node takes the batches of a stream at its own pace. Ids are read for all nodes at once and wait in a
/// queue for each.
class DeviceBatches final : public IdStream {
 public:
  DeviceBatches(std::vector<OrderedStream> streams, std::vector<std::vector<uint16_t>> labels,
                int64_t rank_batch, int64_t num_canonical_nodes, const RankGrid& grid)
      : streams_(std::move(streams)),
        labels_(std::move(labels)),
        rank_batch_(rank_batch),
        rows_(num_canonical_nodes),
        grid_(grid),
        waiting_(streams_.size(), std::vector<std::deque<uint32_t>>(static_cast<size_t>(grid.nodes))) {}

  void skip(int64_t count) override {
    std::vector<std::vector<int64_t>> used(streams_.size(),
                                           std::vector<int64_t>(static_cast<size_t>(grid_.nodes)));
    const int64_t end = at_ + count / rank_batch_;
    for (; at_ < end; ++at_) used[stream_at(at_)][node_at(at_)] += rank_batch_;
    const int64_t round = grid_.ranks_per_node * rows_ / grid_.nodes;  // ids of a node
    for (size_t i = 0; i < streams_.size(); ++i) {
      const int64_t rounds = *std::min_element(used[i].begin(), used[i].end()) / round;
      streams_[i].ids->skip(rounds * grid_.ranks_per_node * rows_);
      for (size_t node = 0; node < waiting_[i].size(); ++node) {
        const auto rest = static_cast<size_t>(used[i][node] - rounds * round);
        while (waiting_[i][node].size() < rest) read_round(i);
        waiting_[i][node].erase(waiting_[i][node].begin(),
                                waiting_[i][node].begin() + static_cast<int64_t>(rest));
      }
    }
  }

  void read(std::span<uint32_t> batch) override {
    const auto size = static_cast<size_t>(rank_batch_);
    for (; !batch.empty(); batch = batch.subspan(size), ++at_) {
      const size_t stream = stream_at(at_);
      std::deque<uint32_t>& queue = waiting_[stream][node_at(at_)];
      while (queue.size() < size) read_round(stream);
      const auto end = queue.begin() + rank_batch_;
      std::copy(queue.begin(), end, batch.begin());
      queue.erase(queue.begin(), end);
      streams_[stream].samples->to_stored(batch.first(size));
    }
  }

 private:
  size_t node_at(int64_t at) const { return static_cast<size_t>(at % grid_.nodes); }
  size_t stream_at(int64_t at) const { return labels_[node_at(at)][static_cast<size_t>(at / grid_.nodes)]; }

  /// Reads as many ids of each canonical node as a node has ranks.
  void read_round(size_t stream) {
    ids_.resize(static_cast<size_t>(grid_.ranks_per_node * rows_));
    streams_[stream].ids->read(ids_);
    for (int64_t row = 0; row < rows_; ++row)
      for (int64_t rank = 0; rank < grid_.ranks_per_node; ++rank)
        waiting_[stream][static_cast<size_t>(row / (rows_ / grid_.nodes))].push_back(
            ids_[static_cast<size_t>(rank * rows_ + row)]);
  }

  std::vector<OrderedStream> streams_;
  std::vector<std::vector<uint16_t>> labels_;
  int64_t at_ = 0;  // number of rank batches read
  int64_t rank_batch_, rows_;
  RankGrid grid_;
  std::vector<std::vector<std::deque<uint32_t>>> waiting_;  // by stream and node
  std::vector<uint32_t> ids_;
};

}  // namespace

std::unique_ptr<IdStream> pooled_batches(OrderedStream stream, const RankGrid& grid) {
  return std::make_unique<PooledBatches>(std::move(stream), grid);
}

std::unique_ptr<IdStream> stratified_batches(std::vector<OrderedStream> streams, std::vector<int64_t> parts) {
  return std::make_unique<StratifiedBatches>(std::move(streams), std::move(parts));
}

std::unique_ptr<IdStream> stream_batches(std::vector<OrderedStream> streams, std::vector<uint16_t> labels,
                                         int64_t batch, const RankGrid& grid) {
  return std::make_unique<StreamBatches>(std::move(streams), std::move(labels), batch, grid);
}

std::unique_ptr<IdStream> device_batches(std::vector<OrderedStream> streams,
                                         std::vector<std::vector<uint16_t>> labels, int64_t rank_batch,
                                         int64_t num_canonical_nodes, const RankGrid& grid) {
  return std::make_unique<DeviceBatches>(std::move(streams), std::move(labels), rank_batch,
                                         num_canonical_nodes, grid);
}

}  // namespace tycho
