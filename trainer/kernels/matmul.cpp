// Matrix products: our own kernel on CPUs where it is faster, cuBLASLt on GPUs, ATen elsewhere.
#include "trainer/kernels/matmul.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/kernels/activation.h"
#include "trainer/kernels/bias.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/kernels/twins/library_products.h"
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

/// A product of two matrices or their transposes.
struct Product {
  const char* op;
  const Tensor& left;
  bool left_transposed;
  const Tensor& right;
  bool right_transposed;

  int64_t depth() const { return left.size(left_transposed ? 0 : 1); }
  // Our kernels and the library take left · rightᵀ.
  MatmulOperand left_operand() const { return operand(op, left, left_transposed); }
  MatmulOperand right_operand() const { return operand(op, right, !right_transposed); }
};

MatmulShape shape_of(const Product& p, const Tensor& out) { return {out.size(0), out.size(1), p.depth()}; }
MatmulResult result_of(const Product& p, const Tensor& added, Tensor& out) {
  return {out.mutable_data_ptr(), dtype_of(p.op, out), added.defined() ? added.const_data_ptr() : nullptr};
}

void multiply_by_own(const Product& p, const Tensor& added, Tensor& out) {
  const Range range("tycho::", p.op);
  cpu_kernels().matmul(shape_of(p, out), p.left_operand(), p.right_operand(), result_of(p, added, out),
                       nullptr);
}

/// Multiplies by the GPU's library. Returns false, and has done nothing, where it has no algorithm.
bool multiply_by_library(const Product& p, const Tensor& added, const ProductEpilogue& epilogue,
                         Tensor& out) {
  if (!out.is_cuda() || !gpu_library_multiplies()) return false;
  const Range range("tycho::", p.op);
  const LibraryProducts& library = *library_products();
  Stream stream = stream_of(out);
  const MatmulShape shape = shape_of(p, out);
  const MatmulOperand left = p.left_operand(), right = p.right_operand();
  const MatmulResult result = result_of(p, added, out);
  const int64_t num_bytes = library.workspace(shape, left, right, result, epilogue);
  if (num_bytes < 0) return false;
  const Tensor workspace = num_bytes > 0 ? at::empty({num_bytes}, out.options().dtype(at::kByte)) : Tensor();
  void* const memory = workspace.defined() ? workspace.mutable_data_ptr() : nullptr;
  return library.multiply(shape, left, right, result, epilogue, memory, stream);
}

std::atomic<bool> notes_are_silent = false;

/// Says of the first form of each kind, of all that a process meets, that the library does not do it.
void say_not_fused(const Product& p, const char* what, std::atomic<bool>& is_said, const Tensor& out) {
  if (!out.is_cuda() || !gpu_library_multiplies() || notes_are_silent || is_said.exchange(true)) return;
  const MatmulShape shape = shape_of(p, out);
  fmt::print(
      stderr,
      "[{}] {} has no {} with products of {} x {}, {} deep, {} to {}: a kernel of its own does it, here "
      "and wherever else it has none\n",
      p.op, library_products()->name(), what, shape.rows, shape.columns, shape.depth,
      c10::toString(p.left.scalar_type()), c10::toString(out.scalar_type()));
}

void multiply_by_aten(const Product& p, const Tensor& added, Tensor& out) {
  const Tensor left = p.left_transposed ? p.left.t() : p.left;
  const Tensor right = p.right_transposed ? p.right.t() : p.right;
  if (out.scalar_type() == left.scalar_type())
    added.defined() ? at::addmm_out(out, added, left, right) : at::mm_out(out, left, right);
  else
    added.defined() ? at::addmm_out(out, added, left, right, out.scalar_type())
                    : at::mm_out(out, left, right, out.scalar_type());
}

void multiply_by_route(const Product& p, bool by_own, const Tensor& added, Tensor& out) {
  if (by_own)
    multiply_by_own(p, added, out);
  else if (!multiply_by_library(p, added, {}, out))
    multiply_by_aten(p, added, out);
}

/// Checks what is added, and adds it along with the product or apart.
void multiply_and_add(const Product& p, const AddedTerms& added, Tensor& out) {
  const Tensor &bias = added.bias_M, &residual = added.residual_NM;
  if (residual.defined())
    check_tensor(p.op, "residual", residual, out.sizes(), out.scalar_type(), out.device());
  if (bias.defined()) check_tensor(p.op, "bias", bias, {out.size(1)}, out.scalar_type(), out.device());
  const bool by_own = is_ours(p.left) || is_few_rows(p.left);
  if (!bias.defined()) return multiply_by_route(p, by_own, residual, out);
  if (multiply_by_library(p, residual, {.bias = bias.const_data_ptr()}, out)) return;
  static std::atomic<bool> is_said = false;
  say_not_fused(p, "bias", is_said, out);
  // A residual takes the bias first, and lets the product add to it: that costs no pass of its own.
  if (residual.defined()) add_bias(bias, residual, out);
  multiply_by_route(p, by_own, residual.defined() ? out : residual, out);
  if (!residual.defined()) add_bias(bias, out, out);
}

/// Sums columns along with the product; false, and nothing is done, where the library does not.
bool multiply_and_sum(const Product& p, bool accumulate, const Tensor& added, ColumnSums sums, Tensor& out) {
  Tensor& to = sums.of_dy_M ? *sums.of_dy_M : *sums.of_x_K;
  Tensor own = accumulate && to.is_cuda() ? at::empty_like(to) : to;  // the library writes, and does not add
  ProductEpilogue epilogue;
  (sums.of_dy_M ? epilogue.left_sums : epilogue.right_sums) = own.mutable_data_ptr<float>();
  if (!multiply_by_library(p, added, epilogue, out)) return false;
  if (accumulate)
    kernels(to).add_to_fp32(to.numel(), Dtype::kFp32, own.const_data_ptr(), to.mutable_data_ptr<float>(),
                            stream_of(to));
  return true;
}

}  // namespace

void silence_product_notes() { notes_are_silent = true; }

void matmul_nt(const Tensor& x_NK, const Tensor& w_MK, Tensor& y_NM, const AddedTerms& added) {
  const char* op = "matmul_nt";
  check_inner(op, rows_of(op, "x", x_NK).dim, rows_of(op, "w", w_MK).dim);
  check_product(op, x_NK, w_MK, y_NM, x_NK.size(0), w_MK.size(0), x_NK.scalar_type());
  multiply_and_add({op, x_NK, false, w_MK, true}, added, y_NM);
}

void matmul_nn(const Tensor& x_NM, const Tensor& w_MK, Tensor& y_NK, const AddedTerms& added) {
  const char* op = "matmul_nn";
  check_inner(op, rows_of(op, "x", x_NM).dim, rows_of(op, "w", w_MK).rows);
  check_product(op, x_NM, w_MK, y_NK, x_NM.size(0), w_MK.size(1), x_NM.scalar_type());
  multiply_and_add({op, x_NM, false, w_MK, false}, added, y_NK);
}

void matmul_gelu(const GeluLayer& layer, const Tensor& x_NK, Tensor& pre_NM, Tensor& y_NM) {
  const char* op = "matmul_gelu";
  const Tensor& w = layer.weight;
  const RowsShape in = rows_of(op, "x", x_NK);
  check_inner(op, in.dim, w.size(layer.in_out ? 0 : 1));
  const int64_t columns = w.size(layer.in_out ? 1 : 0);
  for (const Tensor* out : {&pre_NM, &y_NM})
    check_product(op, x_NK, w, *out, in.rows, columns, x_NK.scalar_type());
  if (layer.bias_M.defined())
    check_tensor(op, "bias", layer.bias_M, {columns}, x_NK.scalar_type(), x_NK.device());
  const Product p{op, x_NK, false, w, !layer.in_out};
  const ProductEpilogue epilogue = {.bias = layer.bias_M.defined() ? layer.bias_M.const_data_ptr() : nullptr,
                                    .gelu_input = pre_NM.mutable_data_ptr()};
  if (multiply_by_library(p, {}, epilogue, y_NM)) return;
  static std::atomic<bool> is_said = false;
  say_not_fused(p, "GELU", is_said, y_NM);
  multiply_and_add(p, {.bias_M = layer.bias_M}, pre_NM);
  activation(Activation::kGeluTanh, pre_NM, y_NM);
}

void matmul_gelu_backward(const GeluLayer& layer, const Tensor& dy_NM, const Tensor& pre_NK, Tensor& dpre_NK,
                          Tensor& y_NK) {
  const char* op = "matmul_gelu_backward";
  const Tensor& w = layer.weight;
  const RowsShape in = rows_of(op, "dy", dy_NM);
  check_inner(op, in.dim, w.size(layer.in_out ? 1 : 0));
  check_product(op, dy_NM, w, dpre_NK, in.rows, w.size(layer.in_out ? 0 : 1), dy_NM.scalar_type());
  check_tensor(op, "pre", pre_NK, dpre_NK.sizes(), dy_NM.scalar_type(), dy_NM.device());
  const Product p{op, dy_NM, false, w, layer.in_out};
  if (multiply_by_library(p, {}, {.gelu_gradient_at = pre_NK.const_data_ptr()}, dpre_NK))
    return activation(Activation::kGeluTanh, pre_NK, y_NK);
  static std::atomic<bool> is_said = false;
  say_not_fused(p, "gradient of GELU", is_said, dpre_NK);
  multiply_and_add(p, {}, dpre_NK);
  activation_backward(Activation::kGeluTanh, pre_NK, dpre_NK, dpre_NK, y_NK);
}

void matmul_tn(const Tensor& dy_NM, const Tensor& x_NK, Tensor& dw_MK, bool accumulate, ColumnSums sums) {
  const char* op = "matmul_tn";
  check_inner(op, rows_of(op, "dy", dy_NM).rows, rows_of(op, "x", x_NK).rows);
  check_product(op, dy_NM, x_NK, dw_MK, dy_NM.size(1), x_NK.size(1), at::kFloat);
  for (const auto& [sum, of] : {std::pair(sums.of_dy_M, &dy_NM), std::pair(sums.of_x_K, &x_NK)})
    if (sum) check_tensor(op, "sums", *sum, {of->size(1)}, at::kFloat, dw_MK.device());
  TYCHO_CHECK(!sums.of_dy_M || !sums.of_x_K, "[{}] expected the sums of one operand, got both", op);
  const Product p{op, dy_NM, true, x_NK, false};
  const Tensor added = accumulate ? dw_MK : Tensor();
  const bool has_sums = sums.of_dy_M || sums.of_x_K;
  if (has_sums && multiply_and_sum(p, accumulate, added, sums, dw_MK)) return;
  static std::atomic<bool> is_said = false;
  if (has_sums) say_not_fused(p, "sums of columns", is_said, dw_MK);
  // Gradients of weights are sums in fp32 on every route, and ATen's product of bf16 on a CPU ends in bf16.
  multiply_by_route(p, is_ours(dy_NM) || (dy_NM.is_cpu() && dy_NM.scalar_type() != at::kFloat), added, dw_MK);
  if (sums.of_dy_M) bias_gradient(dy_NM, *sums.of_dy_M, accumulate);
  if (sums.of_x_K) bias_gradient(x_NK, *sums.of_x_K, accumulate);
}

}  // namespace tycho
