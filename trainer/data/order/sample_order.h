// The order of samples: global batches as a function of (spec, epoch), for one or several streams.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/order/epoch_samples.h"
#include "trainer/data/order/flat_order.h"
#include "trainer/data/order/id_stream.h"
#include "trainer/data/order/order_marks.h"
#include "trainer/data/order/shuffle_parameters.h"
#include "trainer/data/order/stream_weights.h"
#include "trainer/recipe/data.h"

namespace tycho {

struct OrderSpec {
  std::vector<ShardSizes> streams;
  std::vector<StreamWeight> weights;  // one for each stream
  std::vector<std::string> names;     // one for each stream, for messages
  bool shuffle = true;
  ShuffleAlgo algo = ShuffleAlgo::kNaive;
  bool as_torch = false;  // see Shuffle::as_torch
  uint64_t seed = 0;
  int64_t num_canonical_nodes = 1;
  int64_t block_size = 1 << 18;
  SamplingMethod sampling = SamplingMethod::kBalanced;
  int64_t granularity = 1;
  std::optional<int64_t> epoch_size;
  BatchingMethod batching = BatchingMethod::kRandom;
  int64_t global_sequences = 1;
  /// Ranks that batches are arranged for; their number must divide global_sequences.
  RankGrid grid;
  int64_t between_marks = Shuffle().between_marks;
};

/// Orders stored samples, which are numbered through all streams. Immutable.
class SampleOrder {
 public:
  /// Throws Error (kUnusable) that says what does not fit: fewer samples than canonical nodes, a stream
  /// without a sample in a batch, blocks that are too small.
  explicit SampleOrder(OrderSpec spec);

  /// Samples of an epoch, equally many in each. The last ones may not fill a global batch.
  int64_t length() const { return length_; }
  /// Returns the last sample, at most `sample`, at which a resumed epoch can begin: a multiple of the global
  /// batch where batches are composed by stream.
  int64_t start_at(int64_t sample) const;
  /// Streams the samples of an epoch. Read a global batch at a time: first the samples of rank 0 of the grid,
  /// then those of rank 1, …; skip to a start_at(). The order is the same with and without marks, but marks()
  /// make skipping quick.
  std::unique_ptr<IdStream> epoch(int64_t epoch, const OrderMarks& known = {}) const;
  /// Returns the marks of the epoch. Their size is a small fraction of the order's; the time to draw them
  /// grows with the order (0.9 ns for each sample on the processor of bench/results/sample_order.md). Marks
  /// among `known` are not drawn again.
  OrderMarks marks(int64_t epoch, const OrderMarks& known = {}) const;
  const std::vector<StreamShare>& shares() const { return shares_; }

 private:
  void check_sizes() const;
  int64_t padded(size_t stream, const RankGrid& grid) const;
  std::vector<int64_t> batch_parts() const;
  std::vector<int64_t> stream_batches() const;
  int64_t compute_length() const;
  Sampling sampling_of(int64_t epoch) const;
  uint64_t labels_seed(int64_t epoch) const;
  bool pools_streams() const { return spec_.batching == BatchingMethod::kRandom; }
  EpochSamples samples_of(int64_t epoch, size_t stream) const;
  int64_t block_size_of(size_t stream) const;
  Shuffle shuffle_of(int64_t epoch, size_t stream) const;
  std::unique_ptr<IdStream> flat(const EpochSamples& samples, const Shuffle& shuffle, const RankGrid& grid,
                                 const OrderMarks& known) const;

  OrderSpec spec_;
  std::vector<StreamShare> shares_;
  std::vector<int64_t> wanted_;  // samples of each stream
  int64_t epoch_size_ = 0;       // samples of all streams together
  int64_t length_ = 0;
};

}  // namespace tycho
