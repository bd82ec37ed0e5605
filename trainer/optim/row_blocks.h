// A rank's part of a parameter, in rows of the whole one.
#pragma once
#include <vector>

#include "trainer/kernels/tensor.h"
#include "trainer/layout/param_spec.h"
#include "trainer/layout/unit_layout.h"

namespace tycho {

/// Parts of adjacent rows: `rows` times `width` elements of a buffer, `stride` apart. In the whole parameter
/// they begin at row `row` and column `column`. A vector is one row.
struct RowBlock {
  int64_t begin = 0, stride = 0, rows = 0, width = 0;
  int64_t row = 0, column = 0;
};

/// Returns the number of rows of the whole parameter.
int64_t num_rows(const ParamSpec& spec);

/// Returns blocks that cover an extent, each element once.
std::vector<RowBlock> row_blocks(const Extent& extent);

/// Returns the block as a view of the buffer that holds the extent.
Tensor in_buffer(const Tensor& flat, const RowBlock& block);
/// Returns the block as a view of the whole parameter.
Tensor in_whole(const Tensor& whole_RC, const RowBlock& block);

/// Copies a part, in the layout of its extent, to its place in the whole parameter. Leaves out what an
/// earlier rank along tp has too, so that the sum over ranks is the whole.
void copy_to_whole(const Extent& extent, const Tensor& part, const Tensor& whole_RC);
/// Copies all of an extent from the whole parameter.
void copy_from_whole(const Extent& extent, const Tensor& whole_RC, const Tensor& part);

}  // namespace tycho
