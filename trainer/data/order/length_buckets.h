// Sequence bucketing: batches of rows of similar length.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "trainer/data/order/id_stream.h"

namespace tycho {

struct LengthBuckets {
  int64_t window_batches = 1;  // batches that are sorted together
  int64_t batch_rows = 1;      // rows of a global batch
  int64_t num_rows = 0;        // rows of an epoch
  uint64_t seed = 0;
  int64_t epoch = 0;
};

/// Streams the rows of an epoch from its beginning. The rows of each window are sorted by `lengths`, equal
/// ones in their old order, then cut into batches, whose order is shuffled as NumPy's Generator does with a
/// seed of this window. The last window may be smaller; rows after the last whole batch stay there. `lengths`
/// must outlive the stream. Like Hugging Face's group_by_length, which however does not move whole batches.
std::unique_ptr<IdStream> in_length_buckets(std::unique_ptr<IdStream> rows, std::span<const int32_t> lengths,
                                            const LengthBuckets& buckets);

}  // namespace tycho
