// Statistics of the rows of conversations: lengths, cuts, and the share of padding.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/loader/data_order.h"
#include "trainer/data/loader/packed_chat_reader.h"

namespace tycho {

/// Counts of a data set. With packing batch by batch or trimmed padding, they are counts of the first epoch.
struct ChatRows {
  std::string place;
  int64_t examples = 0, cut = 0, dropped = 0;
  int64_t shortest = 0, median = 0, longest = 0;  // tokens of an example, after cuts
  int64_t rows = 0, row_tokens = 0;
  double padding = 0;        // share of the rows, trimmed or not
  double padding_alone = 0;  // share of padding if every example had its own row
  bool packed = false;
  bool trimmed = false;
  int64_t narrowest = 0, widest = 0;  // widths of trimmed batches
  std::optional<BatchPacking> batches;
  int64_t waiting = 0;  // examples carried over into the next epoch
  int64_t lost = 0;     // examples that max_leftover_rows leaves out

  /// Returns the counts as one line.
  std::string summary() const;
  /// Returns the counts for a table, in lines of at most 68 columns.
  std::vector<std::string> lines() const;
};

/// Counts the rows of `data`. Packs the first epoch where rows are packed batch by batch. Throws as
/// batch_packing does.
ChatRows chat_rows(const std::shared_ptr<const ChatDataset>& data, const OrderShape& shape);

}  // namespace tycho
