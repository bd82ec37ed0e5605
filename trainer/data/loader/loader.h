// Batches in the order that (seed, epoch) fixes, prepared ahead by one thread.
#pragma once
#include <memory>
#include <string>

#include "trainer/data/batch.h"
#include "trainer/data/config.h"
#include "trainer/data/order/order_marks.h"
#include "trainer/data/row_reader.h"

namespace tycho {

/// What a loader makes: global batches of `global_sequences`, of which this rank gets its contiguous share.
struct LoaderShape {
  int64_t seq_len = 0;
  int64_t global_sequences = 0;
  int64_t rank = 0, num_ranks = 1;
  int64_t num_machines = 1;  // that the ranks are spread over
  int64_t vocab_size = 0;    // tokens outside [0, vocab_size) are an Error naming shard and sample
  uint64_t seed = 0;         // used when the config has no shuffle_seed
  std::string tokenizer;     // as RowShape's
};

/// Owned by the trainer's thread. A pure function of (config, shape, cursor). The last samples of an epoch
/// that do not fill a global batch are left out. Errors of the loader's thread are thrown by next(), code
/// kUnusable, naming the shard.
class DataLoader {
 public:
  virtual ~DataLoader() = default;
  /// The next batch; waits for it when it is not ready.
  virtual Batch next() = 0;
  /// Where the batch after the one returned last begins.
  virtual DataCursor cursor() const = 0;
  /// Where the batch begins that would be next after `num_batches` more calls of next().
  virtual DataCursor cursor_after(int64_t num_batches) const = 0;
  virtual int64_t samples_per_epoch() const = 0;
  /// With these a loader that begins at cursor() is quicker; empty where it is quick without. The first call
  /// in an epoch draws its order: 0.9 ns for each sample.
  virtual OrderMarks order_marks() = 0;
  /// Of remote data, with what is fetched ahead.
  virtual FetchCounts fetch_counts() const = 0;
};

/// Opens the data set (see open_rows) and starts at `cursor`, which marks of its epoch make quicker.
std::unique_ptr<DataLoader> make_loader(const DataConfig& config, const LoaderShape& shape,
                                        const DataCursor& cursor, const OrderMarks& marks = {});

}  // namespace tycho
