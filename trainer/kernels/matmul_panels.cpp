// bf16 products in fp32, panel by panel.
#include "trainer/kernels/matmul_panels.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "trainer/kernels/kernel_table.h"

namespace tycho::panels {
namespace {

// A panel of fp32: 8 MiB. A product holds three, and an element that was widened takes part in a thousand
// products or more.
constexpr int64_t kPanelFloats = int64_t{8} << 20 >> 2;
constexpr int64_t kLongestInner = 2048;

Tensor scratch(int slot, int64_t rows, int64_t columns, at::ScalarType dtype) {
  thread_local Tensor buffers[3];
  const int64_t bytes = rows * columns * at::elementSize(dtype);
  if (!buffers[slot].defined() || buffers[slot].numel() < bytes)
    buffers[slot] = at::empty({bytes}, at::kByte);
  return buffers[slot].narrow(0, 0, bytes).view(dtype).view({rows, columns});
}

struct Range {
  int64_t first = 0, count = 0;
  bool operator==(const Range&) const = default;
};

/// Runs body over n in equal steps of at most `most`.
template <class Body>
void for_steps(int64_t n, int64_t most, const Body& body) {
  if (n == 0) return;
  const int64_t steps = (n + most - 1) / most;
  const int64_t step = (n + steps - 1) / steps;
  for (int64_t first = 0; first < n; first += step) body(Range{first, std::min(step, n - first)});
}

Tensor block(const Tensor& matrix, Range rows, Range columns) {
  return matrix.narrow(0, rows.first, rows.count).narrow(1, columns.first, columns.count);
}

/// One factor of a product, widened block by block; a block that is wanted again is kept.
class Factor {
 public:
  Factor(int slot, const Tensor& matrix, bool transposed)
      : slot_(slot), matrix_(matrix), transposed_(transposed) {}

  Tensor widened(Range rows, Range columns) {
    if (transposed_) std::swap(rows, columns);
    if (rows != rows_ || columns != columns_) {
      const Tensor from = block(matrix_, rows, columns);
      fp32_ = scratch(slot_, rows.count, columns.count, at::kFloat);
      if (from.is_contiguous())
        cpu_kernels().cast(from.numel(), Dtype::kBf16, from.const_data_ptr(), Dtype::kFp32,
                           fp32_.mutable_data_ptr(), nullptr);
      else
        fp32_.copy_(from);
      rows_ = rows;
      columns_ = columns;
    }
    return transposed_ ? fp32_.t() : fp32_;
  }

 private:
  int slot_;
  const Tensor& matrix_;
  bool transposed_;
  Range rows_, columns_;
  Tensor fp32_;
};

/// out_IJ (bf16 or fp32) = a_IL · b_LJ (+ add_IJ when defined). fp32 outputs hold the sums themselves.
void product(Factor a, Factor b, int64_t inner, const Tensor& add, const Tensor& out) {
  const bool in_place = out.scalar_type() == at::kFloat;
  const int64_t most_inner = std::min(inner, kLongestInner);
  const int64_t most_rows = std::min(out.size(0), kPanelFloats / std::max<int64_t>(1, most_inner));
  const int64_t most_columns = kPanelFloats / std::max({int64_t{1}, most_inner, most_rows});
  for_steps(out.size(0), most_rows, [&](Range rows) {
    for_steps(out.size(1), most_columns, [&](Range columns) {
      Tensor to = block(out, rows, columns);
      Tensor sums = in_place ? to : scratch(2, rows.count, columns.count, at::kFloat);
      if (add.defined() && !in_place) sums.copy_(block(add, rows, columns));
      for_steps(inner, most_inner, [&](Range depth) {
        const Tensor left = a.widened(rows, depth), right = b.widened(depth, columns);
        if (add.defined() || depth.first > 0)
          at::addmm_out(sums, sums, left, right);
        else
          at::mm_out(sums, left, right);
      });
      if (!in_place) to.copy_(sums);
    });
  });
}

}  // namespace

void matmul_nt(const Tensor& x_NK, const Tensor& w_MK, const Tensor& residual_NM, Tensor& y_NM) {
  product(Factor(0, x_NK, false), Factor(1, w_MK, true), x_NK.size(1), residual_NM, y_NM);
}

void matmul_nn(const Tensor& dy_NM, const Tensor& w_MK, Tensor& dx_NK, bool accumulate) {
  product(Factor(0, dy_NM, false), Factor(1, w_MK, false), dy_NM.size(1), accumulate ? dx_NK : Tensor(),
          dx_NK);
}

void matmul_tn(const Tensor& dy_NM, const Tensor& x_NK, Tensor& dw_MK, bool accumulate) {
  product(Factor(0, dy_NM, true), Factor(1, x_NK, false), dy_NM.size(0), accumulate ? dw_MK : Tensor(),
          dw_MK);
}

void matmul_tn_native_bf16(const Tensor& dy_NM, const Tensor& x_NK, Tensor& dw_MK, bool accumulate) {
  for_steps(dw_MK.size(0), 2 * kPanelFloats / std::max<int64_t>(1, dw_MK.size(1)), [&](Range rows) {
    Tensor rounded = scratch(2, rows.count, dw_MK.size(1), at::kBFloat16);
    at::mm_out(rounded, dy_NM.narrow(1, rows.first, rows.count).t(), x_NK);
    Tensor to = dw_MK.narrow(0, rows.first, rows.count);
    if (accumulate)
      cpu_kernels().add_to_fp32(to.numel(), Dtype::kBf16, rounded.const_data_ptr(),
                                to.mutable_data_ptr<float>(), nullptr);
    else
      to.copy_(rounded);
  });
}

}  // namespace tycho::panels
