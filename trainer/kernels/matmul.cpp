// Matrix products through ATen: fp32 and native bf16 directly, bf16 on other CPUs through fp32 panels.
#include "trainer/kernels/matmul.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/kernels/matmul_panels.h"

namespace tycho {
namespace {

// A product is checked by its three matrices; ATen would otherwise silently copy, resize or convert.
void check_product(const char* op, const Tensor& a, const Tensor& b, const Tensor& out, int64_t rows,
                   int64_t columns, at::ScalarType out_dtype) {
  const auto dtype = a.scalar_type();
  dtype_of(op, a);
  check_tensor(op, "left operand", a, a.sizes(), dtype, out.device());
  check_tensor(op, "right operand", b, b.sizes(), dtype, out.device());
  check_tensor(op, "result", out, {rows, columns}, out_dtype, out.device());
}

void check_inner(const char* op, int64_t left, int64_t right) {
  TYCHO_CHECK(left == right,
              "[{}] the operands do not fit: their common dim is {} on the left and {} on the right", op,
              left, right);
}

bool through_panels(const Tensor& a) {
  return a.scalar_type() == at::kBFloat16 && !bf16_is_native(a.device());
}

}  // namespace

void matmul_nt(const Tensor& x_NK, const Tensor& w_MK, Tensor& y_NM) {
  check_inner("matmul_nt", rows_of("matmul_nt", "x", x_NK).dim, rows_of("matmul_nt", "w", w_MK).dim);
  check_product("matmul_nt", x_NK, w_MK, y_NM, x_NK.size(0), w_MK.size(0), x_NK.scalar_type());
  if (through_panels(x_NK)) return panels::matmul_nt(x_NK, w_MK, Tensor(), y_NM);
  at::mm_out(y_NM, x_NK, w_MK.t());
}

void matmul_nt_add(const Tensor& x_NK, const Tensor& w_MK, const Tensor& residual_NM, Tensor& y_NM) {
  const char* op = "matmul_nt_add";
  check_inner(op, rows_of(op, "x", x_NK).dim, rows_of(op, "w", w_MK).dim);
  check_product(op, x_NK, w_MK, y_NM, x_NK.size(0), w_MK.size(0), x_NK.scalar_type());
  check_tensor(op, "residual", residual_NM, y_NM.sizes(), y_NM.scalar_type(), y_NM.device());
  if (through_panels(x_NK)) return panels::matmul_nt(x_NK, w_MK, residual_NM, y_NM);
  at::addmm_out(y_NM, residual_NM, x_NK, w_MK.t());
}

void matmul_nn(const Tensor& dy_NM, const Tensor& w_MK, Tensor& dx_NK, bool accumulate) {
  check_inner("matmul_nn", rows_of("matmul_nn", "dy", dy_NM).dim, rows_of("matmul_nn", "w", w_MK).rows);
  check_product("matmul_nn", dy_NM, w_MK, dx_NK, dy_NM.size(0), w_MK.size(1), dy_NM.scalar_type());
  if (through_panels(dy_NM)) return panels::matmul_nn(dy_NM, w_MK, dx_NK, accumulate);
  if (accumulate)
    at::addmm_out(dx_NK, dx_NK, dy_NM, w_MK);
  else
    at::mm_out(dx_NK, dy_NM, w_MK);
}

void matmul_tn(const Tensor& dy_NM, const Tensor& x_NK, Tensor& dw_MK, bool accumulate) {
  check_inner("matmul_tn", rows_of("matmul_tn", "dy", dy_NM).rows, rows_of("matmul_tn", "x", x_NK).rows);
  check_product("matmul_tn", dy_NM, x_NK, dw_MK, dy_NM.size(1), x_NK.size(1), at::kFloat);
  if (through_panels(dy_NM)) return panels::matmul_tn(dy_NM, x_NK, dw_MK, accumulate);
  const Tensor dy_MN = dy_NM.t();
  if (dy_NM.scalar_type() == at::kFloat) {
    accumulate ? at::addmm_out(dw_MK, dw_MK, dy_MN, x_NK) : at::mm_out(dw_MK, dy_MN, x_NK);
  } else if (dy_NM.is_cuda()) {
    accumulate ? at::addmm_out(dw_MK, dw_MK, dy_MN, x_NK, at::kFloat)
               : at::mm_out(dw_MK, dy_MN, x_NK, at::kFloat);
  } else {
    panels::matmul_tn_native_bf16(dy_NM, x_NK, dw_MK, accumulate);
  }
}

}  // namespace tycho
