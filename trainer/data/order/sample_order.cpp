// Combines sampling, shuffle, canonical nodes and batching, with the seeds that mosaicml-streaming uses for
// each.
#include "trainer/data/order/sample_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/order/batching.h"
#include "trainer/data/order/shuffle.h"

namespace tycho {
namespace {

std::vector<int64_t> stored_samples(const std::vector<ShardSizes>& streams) {
  std::vector<int64_t> samples;
  for (const ShardSizes& shards : streams)
    samples.push_back(std::accumulate(shards.begin(), shards.end(), int64_t{0}));
  return samples;
}

/// Returns `counts[i]` copies of each label i, shuffled.
std::vector<uint16_t> shuffled_labels(std::span<const int64_t> counts, NumpyRng& rng) {
  std::vector<uint16_t> labels;
  for (size_t i = 0; i < counts.size(); ++i)
    labels.insert(labels.end(), static_cast<size_t>(counts[i]), static_cast<uint16_t>(i));
  rng.shuffle(std::span(labels));
  return labels;
}

}  // namespace

SampleOrder::SampleOrder(OrderSpec spec) : spec_(std::move(spec)) {
  const std::vector<int64_t> stored = stored_samples(spec_.streams);
  shares_ = stream_shares(spec_.weights, stored, spec_.epoch_size, spec_.seed);
  for (const StreamShare& share : shares_) {
    wanted_.push_back(share.samples);
    epoch_size_ += share.samples;
  }
  constexpr int64_t kMost = UINT32_MAX;
  const int64_t most = std::max(std::accumulate(stored.begin(), stored.end(), int64_t{0}), epoch_size_);
  if (most > kMost)
    fail(ExitCode::kUnusable,
         "[order] an epoch and its data may have at most 2^32-1 samples, got {}; write a smaller "
         "epoch_size or "
         "fewer streams",
         most);
  check_sizes();
  length_ = compute_length();
}

void SampleOrder::check_sizes() const {
  const bool pooled = pools_streams();
  for (size_t i = 0; i < (pooled ? 1 : wanted_.size()); ++i) {
    const std::string what = pooled ? "an epoch" : fmt::format("an epoch of stream {}", spec_.names[i]);
    const int64_t samples = pooled ? epoch_size_ : wanted_[i];
    if (samples < std::max(spec_.num_canonical_nodes, int64_t{1}))
      fail(ExitCode::kUnusable,
           "[order] {} has {} samples, which cannot be divided among num_canonical_nodes = {}; write a "
           "smaller "
           "num_canonical_nodes or use more data",
           what, samples, spec_.num_canonical_nodes);
    if (spec_.grid.nodes > spec_.num_canonical_nodes && samples < 4 * spec_.grid.nodes)
      fail(ExitCode::kUnusable, "[order] {} has {} samples, too few for {} nodes", what, samples,
           spec_.grid.nodes);
    const int64_t block = pooled ? spec_.block_size : block_size_of(i);
    const int64_t least = spec_.algo == ShuffleAlgo::kPy1br ? 2 : 1;
    if (spec_.shuffle && block < least)
      fail(ExitCode::kUnusable,
           "[order] shuffle_block_size = {} leaves a block of {} samples for {}; write a larger one",
           spec_.block_size, block, what);
  }
  const int64_t rows = spec_.num_canonical_nodes, nodes = spec_.grid.nodes;
  if (rows % nodes != 0 && (nodes % rows != 0 || spec_.batching == BatchingMethod::kDevicePerStream))
    fail(ExitCode::kTopology,
         "[order] num_canonical_nodes = {} and {} machines: one must be a multiple of the other{}", rows,
         nodes,
         spec_.batching == BatchingMethod::kDevicePerStream ? ", and the machines the smaller number" : "");
}

int64_t SampleOrder::block_size_of(size_t stream) const {
  return static_cast<int64_t>(static_cast<double>(spec_.block_size) * shares_[stream].proportion);
}

int64_t SampleOrder::padded(size_t stream, const RankGrid& grid) const {
  return flat_size(wanted_[stream], spec_.num_canonical_nodes, grid);
}

/// Returns the samples of each stream in a global batch: rounded down, and the rest given to the streams that
/// lost most.
std::vector<int64_t> SampleOrder::batch_parts() const {
  std::vector<int64_t> parts;
  std::vector<std::pair<double, size_t>> lost;
  const auto batch = static_cast<double>(spec_.global_sequences);
  int64_t left = spec_.global_sequences;
  for (size_t i = 0; i < shares_.size(); ++i) {
    parts.push_back(static_cast<int64_t>(shares_[i].proportion * batch));
    lost.emplace_back(batch * shares_[i].proportion - static_cast<double>(parts[i]), i);
    left -= parts[i];
  }
  std::sort(lost.begin(), lost.end());
  for (size_t i = lost.size(); left > 0 && i-- > 0; --left) ++parts[lost[i].second];
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i] == 0)
      fail(ExitCode::kUnusable,
           "[order] a global batch of {} sequences has none of stream {}, whose share is {:.4g}; "
           "batching_method "
           "\"stratified\" needs a larger global_batch or a larger share",
           spec_.global_sequences, spec_.names[i], shares_[i].proportion);
  return parts;
}

/// Returns the number of whole batches that each stream gives: global batches, or those of a rank on one
/// node.
std::vector<int64_t> SampleOrder::stream_batches() const {
  std::vector<int64_t> batches;
  const RankGrid& grid = spec_.grid;
  for (size_t i = 0; i < wanted_.size(); ++i) {
    if (spec_.batching == BatchingMethod::kDevicePerStream) {
      const RankGrid rows = {spec_.num_canonical_nodes, grid.ranks_per_node};
      batches.push_back(padded(i, rows) / grid.nodes / (spec_.global_sequences / grid.num_ranks()));
    } else {
      batches.push_back(padded(i, grid) / spec_.global_sequences);
    }
    if (batches.back() == 0)
      fail(ExitCode::kUnusable,
           "[order] stream {} has {} samples in an epoch, too few for a batch of its own; batching_method "
           "\"{}\" needs more of it or a smaller batch",
           spec_.names[i], wanted_[i],
           spec_.batching == BatchingMethod::kPerStream ? "per_stream" : "device_per_stream");
  }
  return batches;
}

int64_t SampleOrder::compute_length() const {
  const int64_t batch = spec_.global_sequences;
  switch (spec_.batching) {
    case BatchingMethod::kRandom: return flat_size(epoch_size_, spec_.num_canonical_nodes, spec_.grid);
    case BatchingMethod::kStratified: {
      const std::vector<int64_t> parts = batch_parts();
      int64_t least = INT64_MAX;
      for (size_t i = 0; i < parts.size(); ++i)
        least = std::min(least, padded(i, {1, spec_.grid.ranks_per_node}) / parts[i]);
      return least * batch;
    }
    case BatchingMethod::kPerStream: {
      const auto batches = stream_batches();
      return std::accumulate(batches.begin(), batches.end(), int64_t{0}) * batch;
    }
    case BatchingMethod::kDevicePerStream: {
      const auto batches = stream_batches();
      return std::accumulate(batches.begin(), batches.end(), int64_t{0}) / spec_.grid.ranks_per_node * batch;
    }
  }
  return 0;
}

int64_t SampleOrder::start_at(int64_t sample) const {
  return spec_.batching == BatchingMethod::kRandom ? sample : sample - sample % spec_.global_sequences;
}

Sampling SampleOrder::sampling_of(int64_t epoch) const {
  const uint64_t later = spec_.seed + static_cast<uint64_t>(epoch);
  const bool balanced = spec_.sampling == SamplingMethod::kBalanced;
  return {spec_.granularity, labels_seed(epoch), balanced ? later : spec_.seed};
}

uint64_t SampleOrder::labels_seed(int64_t epoch) const {
  const bool changes = spec_.shuffle && spec_.sampling == SamplingMethod::kBalanced;
  return spec_.seed + (changes ? static_cast<uint64_t>(epoch) : 0);
}

EpochSamples SampleOrder::samples_of(int64_t epoch, size_t stream) const {
  return {spec_.streams, wanted_, sampling_of(epoch), pools_streams() ? -1 : static_cast<int>(stream)};
}

Shuffle SampleOrder::shuffle_of(int64_t epoch, size_t stream) const {
  const int64_t block_size = pools_streams() ? spec_.block_size : block_size_of(stream);
  return {spec_.algo, spec_.num_canonical_nodes, spec_.seed,    epoch,
          block_size, spec_.between_marks,       spec_.as_torch};
}

std::unique_ptr<IdStream> SampleOrder::flat(const EpochSamples& samples, const Shuffle& shuffle,
                                            const RankGrid& grid, const OrderMarks& known) const {
  auto nodes = spec_.shuffle ? shuffled_nodes(samples.unit_sizes(), shuffle, known)
                             : nodes_in_order(samples.size(), spec_.num_canonical_nodes);
  return make_flat_order(std::move(nodes), samples.size(), grid);
}

OrderMarks SampleOrder::marks(int64_t epoch, const OrderMarks& known) const {
  OrderMarks marks;
  if (!spec_.shuffle || spec_.algo == ShuffleAlgo::kNaive) return marks;
  for (size_t i = 0; i < (pools_streams() ? 1 : wanted_.size()); ++i)
    marks.merge(shuffle_marks(samples_of(epoch, i).unit_sizes(), shuffle_of(epoch, i), known));
  return marks;
}

std::unique_ptr<IdStream> SampleOrder::epoch(int64_t epoch, const OrderMarks& known) const {
  const RankGrid& grid = spec_.grid;
  if (pools_streams()) {
    auto samples = std::make_shared<EpochSamples>(samples_of(epoch, 0));
    auto ids = flat(*samples, shuffle_of(epoch, 0), grid, known);
    return pooled_batches({std::move(ids), std::move(samples)}, grid);
  }
  const bool stratified = spec_.batching == BatchingMethod::kStratified;
  const bool by_device = spec_.batching == BatchingMethod::kDevicePerStream;
  const RankGrid arranged = {stratified  ? 1
                             : by_device ? spec_.num_canonical_nodes
                                         : grid.nodes,
                             grid.ranks_per_node};
  std::vector<OrderedStream> streams;
  for (size_t i = 0; i < wanted_.size(); ++i) {
    auto samples = std::make_shared<EpochSamples>(samples_of(epoch, i));
    auto ids = flat(*samples, shuffle_of(epoch, i), arranged, known);
    streams.push_back({std::move(ids), std::move(samples)});
  }
  if (stratified) return stratified_batches(std::move(streams), batch_parts());
  NumpyRng rng(labels_seed(epoch));
  const std::vector<int64_t> counts = stream_batches();
  if (!by_device)
    return tycho::stream_batches(std::move(streams), shuffled_labels(counts, rng), spec_.global_sequences,
                                 grid);
  std::vector<std::vector<uint16_t>> labels;
  for (int64_t node = 0; node < grid.nodes; ++node) labels.push_back(shuffled_labels(counts, rng));
  return device_batches(std::move(streams), std::move(labels), spec_.global_sequences / grid.num_ranks(),
                        spec_.num_canonical_nodes, grid);
}

}  // namespace tycho
