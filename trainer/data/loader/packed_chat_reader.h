// Conversations packed batch by batch: rows that differ from epoch to epoch.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/data/batch.h"
#include "trainer/data/chat/batch_packer.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/loader/data_order.h"
#include "trainer/data/order/sample_order.h"
#include "trainer/data/row_reader.h"

namespace tycho {

/// How the batches of an epoch are packed.
struct BatchPacking {
  double ratio = 1;
  int64_t num_groups = 1;
  int64_t group_rows = 1;      // of a batch, in each group
  int64_t group_examples = 1;  // that they are packed from
  int64_t num_batches = 0;     // of an epoch: examples that do not fill a batch are left out

  int64_t rows_per_epoch() const { return num_batches * num_groups * group_rows; }
};

/// From packing_ratio and packing_groups of data.config(). "auto" looks at the first examples of the first
/// epoch that each group gets, and takes the least of their ratios, as LLM Foundry's ranks do. Throws Error
/// (kRecipe) when the groups do not divide the global batch, and (kUnusable) when there are too few examples
/// for one.
BatchPacking batch_packing(const ChatDataset& data, const OrderShape& shape);

/// Deals the examples of a batch to the groups one by one, as LLM Foundry's samplers deal them to ranks, and
/// packs each group's (BatchPacker). The rows of a batch are those of the first group, then those of the
/// second, and so on. Rows that wait at the end of an epoch go on into the next one. All of it is a function
/// of (recipe, epoch), whatever ranks there are: an epoch is packed as a whole when it starts, after those
/// before it where a run resumes.
class PackedChatReader final : public RowReader {
 public:
  /// Throws as batch_packing does.
  PackedChatReader(std::shared_ptr<const ChatDataset> data, const OrderShape& shape);

  int64_t num_samples() const override { return packing_.rows_per_epoch(); }
  void start_epoch(int64_t epoch) override;
  /// Of the epoch that was started last; the first when none was.
  Batch read_batch(std::span<const uint32_t> samples, int64_t num_sequences) override;

  const BatchPacking& packing() const { return packing_; }
  /// The examples of a row of that epoch.
  std::span<const uint32_t> row(uint32_t sample) const { return rows_[sample]; }
  /// Examples that wait for the next epoch.
  int64_t waiting_examples() const;
  /// Examples of all epochs so far that were left over and, with max_leftover_rows, did not wait.
  int64_t lost_examples() const;

 private:
  void pack_next_epoch();

  std::shared_ptr<const ChatDataset> data_;
  BatchPacking packing_;
  SampleOrder order_;                 // of examples
  std::vector<BatchPacker> packers_;  // by group
  std::vector<std::vector<uint32_t>> rows_;
  int64_t epoch_ = -1;
};

}  // namespace tycho
