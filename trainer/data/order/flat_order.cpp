// Reads a matrix with a row for each canonical node column by column. Only its last columns, which hold the
// repeated ids, are in memory.
#include "trainer/data/order/flat_order.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr int64_t kChunk = 8192;  // ids

int64_t round_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }

/// Returns the number of grid nodes per canonical node, at least 1.
int64_t nodes_per_row(int64_t rows, const RankGrid& grid) { return std::max<int64_t>(grid.nodes / rows, 1); }

class FlatOrder final : public ChunkedStream {
 public:
  FlatOrder(std::vector<std::unique_ptr<IdStream>> streams, int64_t num_ids, const RankGrid& grid)
      : streams_(std::move(streams)),
        num_ids_(num_ids),
        rows_(static_cast<int64_t>(streams_.size())),
        grid_(grid) {
    const int64_t back = 2 * grid.num_ranks() / rows_ + 3 * nodes_per_row(rows_, grid) + 2;
    tail_column_ = std::max<int64_t>(num_ids / rows_ - back, 0);
  }

 protected:
  size_t next_size() const override { return static_cast<size_t>(num_columns() * rows_); }

  size_t make(IdChunk& chunk) override {
    if (column_ == tail_column_) {
      make_tail(chunk);
      return chunk.size();
    }
    const int64_t columns = num_columns();
    chunk.resize(static_cast<size_t>(columns * rows_));
    if (rows_ == 1) {
      streams_[0]->read(chunk);
    } else {
      row_.resize(static_cast<size_t>(columns));
      for (int64_t row = 0; row < rows_; ++row) {
        streams_[static_cast<size_t>(row)]->read(row_);
        for (int64_t i = 0; i < columns; ++i)
          chunk[static_cast<size_t>(i * rows_ + row)] = row_[static_cast<size_t>(i)];
      }
    }
    column_ += columns;
    return chunk.size();
  }

  void pass() override { leap(num_columns() * rows_); }

  int64_t leap(int64_t count) override {
    const int64_t columns = std::min(count / rows_, tail_column_ - column_);
    for (const auto& stream : streams_) stream->skip(columns);
    column_ += columns;
    return columns * rows_;
  }

 private:
  /// Returns the number of columns of the next chunk; 0 for the tail.
  int64_t num_columns() const {
    return std::min(std::max<int64_t>(kChunk / rows_, 1), tail_column_ - column_);
  }

  void make_tail(IdChunk& tail) {
    const int64_t longest = round_up(num_ids_, rows_) / rows_;
    const int64_t ratio = nodes_per_row(rows_, grid_), width = round_up(longest, ratio);
    const int64_t padding = width - longest, columns = width - tail_column_;
    tail.assign(static_cast<size_t>(columns * rows_), 0);
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t length = num_ids_ * (row + 1) / rows_ - num_ids_ * row / rows_;
      const auto at = [&](int64_t column) -> uint32_t& {
        return tail[static_cast<size_t>((column - tail_column_) * rows_ + row)];
      };
      row_.resize(static_cast<size_t>(length - tail_column_));
      streams_[static_cast<size_t>(row)]->read(row_);
      for (int64_t column = tail_column_; column < length; ++column)
        at(column) = row_[static_cast<size_t>(column - tail_column_)];
      if (length < longest) at(longest - 1) = at(longest - 2);
      for (int64_t i = 0; i < padding; ++i) at(longest + i) = at(longest - ratio + 1 - padding + i);
    }
    column_ = width;
    repeat_for_ranks(tail, width * rows_ / grid_.nodes);
  }

  /// Repeats late ids until each rank of a node, which has `columns` ids, gets equally many.
  void repeat_for_ranks(IdChunk& tail, int64_t columns) const {
    const int64_t missing = round_up(columns, grid_.ranks_per_node) - columns;
    const int64_t before = columns - static_cast<int64_t>(tail.size()) / grid_.nodes;  // columns before the
                                                                                       // tail
    const bool enough = grid_.ranks_per_node + missing - 1 <= columns;
    for (int64_t i = 0; i < missing; ++i) {
      const int64_t source = enough ? columns - grid_.ranks_per_node - missing + 1 + i : i % columns;
      for (int64_t node = 0; node < grid_.nodes; ++node)
        tail.push_back(tail[static_cast<size_t>((source - before) * grid_.nodes + node)]);
    }
  }

  std::vector<std::unique_ptr<IdStream>> streams_;
  int64_t num_ids_, rows_;
  RankGrid grid_;
  int64_t tail_column_, column_ = 0;
  std::vector<uint32_t> row_;
};

}  // namespace

int64_t flat_size(int64_t num_ids, int64_t num_canonical_nodes, const RankGrid& grid) {
  const int64_t longest = round_up(num_ids, num_canonical_nodes) / num_canonical_nodes;
  const int64_t width = round_up(longest, nodes_per_row(num_canonical_nodes, grid));
  return round_up(width * num_canonical_nodes / grid.nodes, grid.ranks_per_node) * grid.nodes;
}

std::unique_ptr<IdStream> make_flat_order(std::vector<std::unique_ptr<IdStream>> streams, int64_t num_ids,
                                          const RankGrid& grid) {
  const auto rows = static_cast<int64_t>(streams.size());
  TYCHO_CHECK(rows > 0 && num_ids >= rows && (grid.nodes % rows == 0 || rows % grid.nodes == 0),
              "[order] {} samples cannot be dealt to {} canonical nodes and {} nodes", num_ids, rows,
              grid.nodes);
  return std::make_unique<FlatOrder>(std::move(streams), num_ids, grid);
}

}  // namespace tycho
