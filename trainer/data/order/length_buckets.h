// Sequence bucketing: batches of rows that are about equally long.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "trainer/data/order/id_stream.h"

namespace tycho {

struct LengthBuckets {
  int64_t window_batches = 1;  // that are sorted together
  int64_t batch_rows = 1;      // of a global batch
  int64_t num_rows = 0;        // of an epoch
  uint64_t seed = 0;
  int64_t epoch = 0;
};

/// The rows of an epoch, from its beginning: those of each window sorted by `lengths`, equal ones in the
/// order that they had, then cut into batches, whose order is shuffled as NumPy's Generator does with a seed
/// of this window. The last window may be smaller; rows behind the last whole batch stay there. `lengths`
/// outlive the stream. As Hugging Face's group_by_length, which however puts no batch whole in another place.
std::unique_ptr<IdStream> in_length_buckets(std::unique_ptr<IdStream> rows, std::span<const int32_t> lengths,
                                            const LengthBuckets& buckets);

}  // namespace tycho
