// Packs the examples of one batch after the other into rows, as LLM Foundry's packing_ratio does.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tycho {

/// The rows that LLM Foundry's BinPackCollator makes (llmfoundry/data/packing.py, 0.22.0). A batch's examples
/// are taken longest first; each goes into the first row with room, which then stands behind the others, or
/// opens one. When as few examples are left as rows are missing, each opens a row. The fullest rows are the
/// batch; of the others the fullest `most_waiting` wait for the next one, by default all of them. Owned by
/// one thread.
class BatchPacker {
 public:
  /// Rows of a batch, and tokens of a row; both positive.
  BatchPacker(int64_t num_rows, int64_t row_tokens, std::optional<int64_t> most_waiting = std::nullopt)
      : num_rows_(num_rows), row_tokens_(row_tokens), most_waiting_(most_waiting) {}

  /// The rows of the next batch, fullest first; a row has its examples in the order in which they stand in
  /// it. `examples` are at least as many as rows; lengths[i], from 1 to row_tokens, is that of example i.
  std::vector<std::vector<uint32_t>> pack(std::span<const uint32_t> examples,
                                          std::span<const int32_t> lengths);

  /// Examples in rows that wait, and their tokens.
  int64_t waiting_examples() const;
  int64_t waiting_tokens() const;
  /// Examples of rows that did not wait: they are in no batch.
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
  std::vector<Row> rows_;  // that wait, fullest first
};

}  // namespace tycho
