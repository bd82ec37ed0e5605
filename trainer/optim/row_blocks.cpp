// Cuts extents at the ends of rows, and where a rank along tp has columns that are not neighbours.
#include "trainer/optim/row_blocks.h"

#include <algorithm>

#include "trainer/layout/tp_parts.h"

namespace tycho {
namespace {

/// Adds elements [first, first + count) of rows of `width`, stored at `begin`: the end of a row, whole rows,
/// the beginning of one.
void add_rows(int64_t begin, int64_t first, int64_t count, int64_t width, std::vector<RowBlock>& list) {
  while (count > 0) {
    const int64_t inside = first % width, rows = inside == 0 ? std::max<int64_t>(1, count / width) : 1;
    const int64_t taken = std::min(count, rows * width - inside);
    list.push_back({begin, taken / rows, rows, taken / rows, first / width, inside});
    begin += taken, first += taken, count -= taken;
  }
}

/// Returns blocks of a part of every row, cut into runs of columns that are adjacent in the whole parameter.
std::vector<RowBlock> in_whole_columns(const std::vector<RowBlock>& here, const ParamSpec& spec) {
  std::vector<RowBlock> list;
  const int64_t step = numel(spec.shape) / spec.shape[0] / spec.shape[1];  // width of a column
  for (const RowBlock& block : here)
    for (const ParamPart::Run& run : spec.part->runs) {
      const int64_t from = std::max(block.column, run.here * step),
                    to = std::min(block.column + block.width, (run.here + run.size) * step);
      if (from < to)
        list.push_back({block.begin + from - block.column, block.stride, block.rows, to - from, block.row,
                        from + (run.there - run.here) * step});
    }
  return list;
}

}  // namespace

int64_t num_rows(const ParamSpec& spec) {
  const Shape& whole = spec.whole_shape();
  return whole.size() <= 1 ? 1 : whole[0];
}

std::vector<RowBlock> row_blocks(const Extent& extent) {
  const ParamSpec& spec = *extent.spec;
  std::vector<RowBlock> list;
  if (spec.part && spec.part->dim > 0) {
    add_rows(extent.begin, extent.first, extent.size(), numel(spec.shape) / spec.shape[0], list);
    return in_whole_columns(list, spec);
  }
  const int64_t width = numel(spec.whole_shape()) / num_rows(spec);
  for_whole_runs(spec, extent.first, extent.size(),
                 [&](int64_t i, int64_t j, int64_t n) { add_rows(extent.begin + i, j, n, width, list); });
  return list;
}

Tensor in_buffer(const Tensor& flat, const RowBlock& block) {
  return flat.as_strided({block.rows, block.width}, {block.stride, 1}, flat.storage_offset() + block.begin);
}

Tensor in_whole(const Tensor& whole_RC, const RowBlock& block) {
  return whole_RC.narrow(0, block.row, block.rows).narrow(1, block.column, block.width);
}

void copy_to_whole(const Extent& extent, const Tensor& part, const Tensor& whole_RC) {
  for (const Extent& once : counted(extent))
    for (const RowBlock& block : row_blocks(once)) in_whole(whole_RC, block).copy_(in_buffer(part, block));
}

void copy_from_whole(const Extent& extent, const Tensor& whole_RC, const Tensor& part) {
  for (const RowBlock& block : row_blocks(extent)) in_buffer(part, block).copy_(in_whole(whole_RC, block));
}

}  // namespace tycho
