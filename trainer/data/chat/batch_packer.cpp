// First fit over a list of rows. The list has LLM Foundry's order, which the resulting rows depend on.
#include "trainer/data/chat/batch_packer.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"

namespace tycho {

std::vector<std::vector<uint32_t>> BatchPacker::pack(std::span<const uint32_t> examples,
                                                     std::span<const int32_t> lengths) {
  TYCHO_CHECK(std::cmp_greater_equal(examples.size(), num_rows_),
              "[packing] expected at least {} examples for {} rows, got {}", num_rows_, num_rows_,
              examples.size());
  std::vector<uint32_t> by_length(examples.begin(), examples.end());
  std::stable_sort(by_length.begin(), by_length.end(),
                   [&](uint32_t a, uint32_t b) { return lengths[a] > lengths[b]; });
  for (size_t i = 0; i < by_length.size(); ++i) {
    const int64_t missing = num_rows_ - std::ssize(rows_),
                  left = std::ssize(by_length) - static_cast<int64_t>(i);
    place(by_length[i], lengths[by_length[i]], /*in_row_of_its_own=*/left == std::max<int64_t>(missing, 0));
  }
  std::stable_sort(rows_.begin(), rows_.end(),
                   [](const Row& a, const Row& b) { return a.tokens > b.tokens; });
  std::vector<std::vector<uint32_t>> batch;
  for (int64_t i = 0; i < num_rows_; ++i) batch.push_back(std::move(rows_[static_cast<size_t>(i)].examples));
  rows_.erase(rows_.begin(), rows_.begin() + num_rows_);
  while (most_waiting_ && std::ssize(rows_) > *most_waiting_) {
    lost_examples_ += std::ssize(rows_.back().examples);
    rows_.pop_back();
  }
  return batch;
}

void BatchPacker::place(uint32_t example, int64_t length, bool in_row_of_its_own) {
  TYCHO_CHECK(length > 0 && length <= row_tokens_,
              "[packing] expected examples of 1 to {} tokens, got one of {}", row_tokens_, length);
  Row row;
  if (!in_row_of_its_own) {
    const auto fit = std::find_if(rows_.begin(), rows_.end(),
                                  [&](const Row& open) { return open.tokens + length <= row_tokens_; });
    if (fit != rows_.end()) {
      row = std::move(*fit);
      rows_.erase(fit);
    }
  }
  row.tokens += length;
  row.examples.push_back(example);
  rows_.push_back(std::move(row));
}

int64_t BatchPacker::waiting_examples() const {
  int64_t count = 0;
  for (const Row& row : rows_) count += std::ssize(row.examples);
  return count;
}

int64_t BatchPacker::waiting_tokens() const {
  int64_t tokens = 0;
  for (const Row& row : rows_) tokens += row.tokens;
  return tokens;
}

}  // namespace tycho
