// Matrix products: our own kernel on CPUs where it is faster, ATen elsewhere.
#include "trainer/kernels/matmul.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {
namespace {

// Checks a product's three matrices; ATen would otherwise silently copy, resize or convert.
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

/// True if our own kernel computes this product.
bool is_ours(const Tensor& a) {
  return a.is_cpu() && (a.scalar_type() == at::kFloat ? fp32_is_ours() : bf16_is_ours());
}

/// True for a few rows by a weight matrix, as in generation: our kernel reads the weights once, in place.
bool is_few_rows(const Tensor& x_NK) { return x_NK.is_cpu() && x_NK.size(0) <= 8; }

/// Returns the operand whose element (row, k) is that of the matrix, or of its transpose.
MatmulOperand operand(const char* op, const Tensor& matrix, bool transposed) {
  return {matrix.const_data_ptr(), dtype_of(op, matrix), transposed ? 1 : matrix.size(1),
          transposed ? matrix.size(1) : 1};
}

/// Computes out = left · rightᵀ (+ added); each operand is a matrix or its transpose.
void product(const char* op, const MatmulOperand& left, const MatmulOperand& right, int64_t depth,
             const Tensor* added, Tensor& out) {
  const Range range("tycho::", op);
  cpu_kernels().matmul({out.size(0), out.size(1), depth}, left, right,
                       {out.mutable_data_ptr(), dtype_of(op, out), added ? added->const_data_ptr() : nullptr},
                       nullptr);
}

}  // namespace

void matmul_nt(const Tensor& x_NK, const Tensor& w_MK, Tensor& y_NM) {
  const char* op = "matmul_nt";
  check_inner(op, rows_of(op, "x", x_NK).dim, rows_of(op, "w", w_MK).dim);
  check_product(op, x_NK, w_MK, y_NM, x_NK.size(0), w_MK.size(0), x_NK.scalar_type());
  if (is_ours(x_NK) || is_few_rows(x_NK))
    return product(op, operand(op, x_NK, false), operand(op, w_MK, false), x_NK.size(1), nullptr, y_NM);
  at::mm_out(y_NM, x_NK, w_MK.t());
}

void matmul_nt_add(const Tensor& x_NK, const Tensor& w_MK, const Tensor& residual_NM, Tensor& y_NM) {
  const char* op = "matmul_nt_add";
  check_inner(op, rows_of(op, "x", x_NK).dim, rows_of(op, "w", w_MK).dim);
  check_product(op, x_NK, w_MK, y_NM, x_NK.size(0), w_MK.size(0), x_NK.scalar_type());
  check_tensor(op, "residual", residual_NM, y_NM.sizes(), y_NM.scalar_type(), y_NM.device());
  if (is_ours(x_NK) || is_few_rows(x_NK))
    return product(op, operand(op, x_NK, false), operand(op, w_MK, false), x_NK.size(1), &residual_NM, y_NM);
  at::addmm_out(y_NM, residual_NM, x_NK, w_MK.t());
}

void matmul_nn(const Tensor& dy_NM, const Tensor& w_MK, Tensor& dx_NK, bool accumulate) {
  const char* op = "matmul_nn";
  check_inner(op, rows_of(op, "dy", dy_NM).dim, rows_of(op, "w", w_MK).rows);
  check_product(op, dy_NM, w_MK, dx_NK, dy_NM.size(0), w_MK.size(1), dy_NM.scalar_type());
  if (is_ours(dy_NM) || is_few_rows(dy_NM))
    return product(op, operand(op, dy_NM, false), operand(op, w_MK, true), dy_NM.size(1),
                   accumulate ? &dx_NK : nullptr, dx_NK);
  if (accumulate)
    at::addmm_out(dx_NK, dx_NK, dy_NM, w_MK);
  else
    at::mm_out(dx_NK, dy_NM, w_MK);
}

void matmul_tn(const Tensor& dy_NM, const Tensor& x_NK, Tensor& dw_MK, bool accumulate) {
  const char* op = "matmul_tn";
  check_inner(op, rows_of(op, "dy", dy_NM).rows, rows_of(op, "x", x_NK).rows);
  check_product(op, dy_NM, x_NK, dw_MK, dy_NM.size(1), x_NK.size(1), at::kFloat);
  const bool is_fp32 = dy_NM.scalar_type() == at::kFloat;
  // Gradients of weights are sums in fp32 on every route, and ATen's product of bf16 on a CPU ends in bf16.
  if (is_ours(dy_NM) || (dy_NM.is_cpu() && !is_fp32))
    return product(op, operand(op, dy_NM, true), operand(op, x_NK, true), dy_NM.size(0),
                   accumulate ? &dw_MK : nullptr, dw_MK);
  const Tensor dy_MN = dy_NM.t();
  if (is_fp32)
    accumulate ? at::addmm_out(dw_MK, dw_MK, dy_MN, x_NK) : at::mm_out(dw_MK, dy_MN, x_NK);
  else
    accumulate ? at::addmm_out(dw_MK, dw_MK, dy_MN, x_NK, at::kFloat)
               : at::mm_out(dw_MK, dy_MN, x_NK, at::kFloat);
}

}  // namespace tycho
