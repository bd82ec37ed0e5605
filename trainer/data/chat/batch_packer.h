// Packs the examples of consecutive batches into rows, as LLM Foundry's packing_ratio does.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tycho {

/// Makes the rows of LLM Foundry's BinPackCollator (llmfoundry/data/packing.py, 0.22.0). A batch's examples
/// are taken longest first. Each goes into the first row with room, and that row moves behind the others; if
/// no row has room, the example opens one. When as few examples are left as rows are missing, each opens a
/// row. The fullest rows are the batch; the fullest `most_waiting` of the others wait for the next batch, by
/// default all of them. Owned by one thread.
class BatchPacker {
 public:
  /// `num_rows` of a batch and `row_tokens` of a row are positive.
  BatchPacker(int64_t num_rows, int64_t row_tokens, std::optional<int64_t> most_waiting = std::nullopt)
      : num_rows_(num_rows), row_tokens_(row_tokens), most_waiting_(most_waiting) {}

  /// Returns the rows of the next batch, fullest first. A row lists its examples in the order in which they
  /// stand in it. Requires at least as many `examples` as rows. lengths[i], from 1 to row_tokens, is the
  /// length of example i.
  std::vector<std::vector<uint32_t>> pack(std::span<const uint32_t> examples,
                                          std::span<const int32_t> lengths);

  /// Number of examples in rows that wait, and of their tokens.
  int64_t waiting_examples() const;
  int64_t waiting_tokens() const;
  /// Number of examples in rows that neither were in a batch nor wait.
  int64_t lost_examples() const { return lost_examples_; }

 private:
  struct Row {
    int64_t tokens = 0;
    std::vector<uint32_t> examples;
  };
  void place(uint32_t example, int64_t length, bool in_row_of_its_own);

  int64_t num_rows_, row_tokens_;
  std::optional<int64_t> most_waiting_;
  int64_t lost_examples_ = 0;
  std::vector<Row> rows_;  // rows that wait, fullest first
};

}  // namespace tycho
