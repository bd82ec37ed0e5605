// Batches in the order that (seed, epoch) fixes, prepared ahead by one thread.
#pragma once
#include <memory>
#include <string>

#include "trainer/data/order/order_marks.h"
#include "trainer/data/rows/batch.h"
#include "trainer/data/rows/opened_data.h"
#include "trainer/data/rows/row_reader.h"
#include "trainer/recipe/data.h"

namespace tycho {

/// Shape of the batches: global batches of `global_sequences`, of which this rank gets its contiguous share.
struct LoaderShape {
  int64_t seq_len = 0;
  int64_t global_sequences = 0;
  int64_t rank = 0, num_ranks = 1;
  int64_t num_nodes = 1;   // machines that the ranks are spread over
  int64_t vocab_size = 0;  // tokens outside [0, vocab_size) are an Error naming shard and sample
  uint64_t seed = 0;       // used when the config has no shuffle_seed
  std::string tokenizer;   // see RowShape::tokenizer
  bool marks = false;      // see RowShape::marks
};

/// Owned by the trainer's thread. A pure function of (config, shape, cursor). The last samples of an epoch
/// that do not fill a global batch are left out. Errors of the loader's thread are thrown by next() with code
/// kUnusable and name the shard.
class DataLoader {
 public:
  virtual ~DataLoader() = default;
  /// Returns the next batch. Blocks until it is ready.
  virtual Batch next() = 0;
  /// Position after the batch that next() returned last.
  virtual DataCursor cursor() const = 0;
  /// Position after `num_batches` more calls of next().
  virtual DataCursor cursor_after(int64_t num_batches) const = 0;
  virtual int64_t samples_per_epoch() const = 0;
  /// Returns marks that let a loader start at cursor() more quickly; empty where starting is quick without
  /// them. The first call in an epoch draws its order: 0.9 ns for each sample.
  virtual OrderMarks order_marks() = 0;
  /// Counts of shards of remote data, including those fetched ahead.
  virtual FetchCounts fetch_counts() const = 0;
};

/// Opens the data set (see open_rows) and starts at `cursor`. `marks` of the cursor's epoch make that
/// quicker.
std::unique_ptr<DataLoader> make_loader(const DataConfig& config, const LoaderShape& shape,
                                        const DataCursor& cursor, const OpenedData& opened,
                                        const OrderMarks& marks = {});

}  // namespace tycho
