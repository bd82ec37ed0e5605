// Conversations packed batch by batch: rows that differ from epoch to epoch.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/data/chat/batch_packer.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/loader/data_order.h"
#include "trainer/data/order/sample_order.h"
#include "trainer/data/rows/batch.h"
#include "trainer/data/rows/row_reader.h"

namespace tycho {

/// Numbers of rows and examples with which the batches of an epoch are packed.
struct BatchPacking {
  double ratio = 1;
  int64_t num_groups = 1;
  int64_t group_rows = 1;      // rows of a batch in each group
  int64_t group_examples = 1;  // examples that these rows are packed from
  int64_t num_batches = 0;     // batches of an epoch; examples that do not fill a batch are left out

  int64_t rows_per_epoch() const { return num_batches * num_groups * group_rows; }
};

/// Derives the packing from packing_ratio and packing_groups of data.config(). For "auto", it takes the least
/// ratio that find_packing_ratio finds for the groups' first examples of the first epoch, as LLM Foundry's
/// ranks do. Throws Error (kRecipe) when the groups do not divide the global batch, and (kUnusable) when
/// there are too few examples for a batch.
BatchPacking batch_packing(const ChatDataset& data, const OrderShape& shape);

/// Deals the examples of a batch to the groups one by one, as LLM Foundry's samplers deal them to ranks, and
/// packs each group with a BatchPacker. The rows of a batch are the first group's, then the second group's,
/// and so on. Rows that wait at the end of an epoch are carried over into the next. Everything is a function
/// of (recipe, epoch), whatever ranks there are: an epoch is packed as a whole when it starts, after the
/// epochs before it where a run resumes.
class PackedChatReader final : public RowReader {
 public:
  /// Throws as batch_packing does.
  PackedChatReader(std::shared_ptr<const ChatDataset> data, const OrderShape& shape);

  int64_t num_samples() const override { return packing_.rows_per_epoch(); }
  void start_epoch(int64_t epoch) override;
  /// Reads rows of the epoch that was started last, or of the first one if none was.
  Batch read_batch(std::span<const uint32_t> samples, int64_t num_sequences) override;

  const BatchPacking& packing() const { return packing_; }
  /// Examples of a row of that epoch.
  std::span<const uint32_t> row(uint32_t sample) const { return rows_[sample]; }
  /// Number of examples that wait for the next epoch.
  int64_t waiting_examples() const;
  /// Number of examples of all epochs so far that were left over and, with max_leftover_rows, did not wait.
  int64_t lost_examples() const;

 private:
  void pack_next_epoch();

  std::shared_ptr<const ChatDataset> data_;
  BatchPacking packing_;
  SampleOrder order_;                 // order of examples
  std::vector<BatchPacker> packers_;  // by group
  std::vector<std::vector<uint32_t>> rows_;
  int64_t epoch_ = -1;
};

}  // namespace tycho
