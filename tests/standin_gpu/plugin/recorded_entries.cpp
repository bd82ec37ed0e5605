// Products and attention of LibTorch in record mode: launches with their bytes and FLOPs, and the memory that
// they take while they run.
#include "tests/standin_gpu/plugin/recorded_entries.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <fmt/format.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/standin_gpu/plugin/recorded_attention.h"
#include "tests/standin_gpu/runtime/record.h"
#include "tests/standin_gpu/runtime/state.h"
#include "trainer/kernels/twins/kernel_work.h"

namespace standin {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

const char* name_of(at::ScalarType type) {
  return type == at::kFloat ? "fp32" : c10::elementSize(type) == 1 ? "fp8" : "bf16";
}

/// Records a [M, K] · [K, N], whose result has this type, or is added to `c` in place; a `c` that lies
/// elsewhere is copied first, as ATen does.
void record_product(const Tensor& a, const Tensor& b, at::ScalarType type, const Tensor* c,
                    const Tensor* out) {
  const int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1), batch = a.dim() == 3 ? a.size(0) : 1;
  const double result = static_cast<double>(batch * m * n) * static_cast<double>(c10::elementSize(type));
  const bool in_place = c != nullptr && out != nullptr && c->data_ptr() == out->data_ptr();
  if (c != nullptr && !in_place) standin_record("copy of the residual", bytes(*c), result, 0);
  const std::string name =
      fmt::format("product {}x{}x{}{} {} to {}{}", m, n, k, batch > 1 ? fmt::format(" x {}", batch) : "",
                  name_of(a.scalar_type()), c != nullptr ? "added " : "", name_of(type));
  standin_record(name.c_str(), bytes(a) + bytes(b) + (c != nullptr ? result : 0), result,
                 tycho::matmul_flops({batch * m, n, k}));
}

Tensor made(const Tensor& a, const Tensor& b, at::ScalarType type) {
  std::vector<int64_t> sizes = a.sizes().vec();
  sizes.back() = b.size(-1);
  return at::empty(sizes, a.options().dtype(type));
}

Tensor mm_to(const Tensor& a, const Tensor& b, at::ScalarType type) {
  record_product(a, b, type, nullptr, nullptr);
  return made(a, b, type);
}
Tensor& mm_to_out(const Tensor& a, const Tensor& b, at::ScalarType type, Tensor& out) {
  record_product(a, b, type, nullptr, &out);
  return out;
}
Tensor addmm_to(const Tensor& c, const Tensor& a, const Tensor& b, at::ScalarType type, const at::Scalar&,
                const at::Scalar&) {
  record_product(a, b, type, &c, nullptr);
  return made(a, b, type);
}
Tensor& addmm_to_out(const Tensor& c, const Tensor& a, const Tensor& b, at::ScalarType type,
                     const at::Scalar&, const at::Scalar&, Tensor& out) {
  record_product(a, b, type, &c, &out);
  return out;
}
Tensor& scaled_mm_out(const Tensor& a, const Tensor& b, const Tensor&, const Tensor&, const OptionalTensor&,
                      const OptionalTensor&, std::optional<at::ScalarType>, bool, Tensor& out) {
  record_product(a, b, out.scalar_type(), nullptr, &out);
  return out;
}
Tensor mm(const Tensor& a, const Tensor& b) { return mm_to(a, b, a.scalar_type()); }
Tensor& mm_out(const Tensor& a, const Tensor& b, Tensor& out) {
  return mm_to_out(a, b, out.scalar_type(), out);
}
Tensor& addmm_out(const Tensor& c, const Tensor& a, const Tensor& b, const at::Scalar& beta,
                  const at::Scalar& alpha, Tensor& out) {
  return addmm_to_out(c, a, b, out.scalar_type(), beta, alpha, out);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> flash_forward(
    const Tensor& q, const Tensor& k, const Tensor&, const OptionalTensor& starts_q, const OptionalTensor&,
    int64_t, int64_t, double, bool causal, bool, std::optional<double>, std::optional<int64_t> left,
    std::optional<int64_t>, const OptionalTensor&, const OptionalTensor&) {
  const AttentionSizes s(q, k, false, starts_q, causal, left);
  const Tensor out = at::empty(q.sizes(), q.options()), sums = statistics_of(q, s);
  record_forward("flash attention", q, k, out, sums, s);
  const auto state = at::empty({2}, q.options().dtype(at::kLong));
  return {out, sums, state, at::empty({}, state.options()), at::empty({0}, q.options())};
}

/// Three kernels beside the main one: fp32 sums of dq, a number of them in a fixed order, start as zeros; dO
/// times O is added up by row; and the sums become dq. Gradients of shared keys are added up over their query
/// heads.
std::tuple<Tensor, Tensor, Tensor> flash_backward(const Tensor& d_out, const Tensor& q, const Tensor& k,
                                                  const Tensor&, const Tensor& out, const Tensor&,
                                                  const Tensor& starts_q, const Tensor&, int64_t, int64_t,
                                                  double, bool causal, const Tensor&, const Tensor&,
                                                  std::optional<double>, std::optional<int64_t> left,
                                                  std::optional<int64_t>) {
  const AttentionSizes s(q, k, false, starts_q, causal, left);
  const bool ordered = at::globalContext().deterministicAlgorithms();
  const int64_t pairs = s.sequences * s.heads, copies = ordered ? (num_sms() + pairs - 1) / pairs : 1;
  const int64_t rows = q.dim() == 3 ? q.size(0) + 128 * s.sequences : q.size(0) * rounded(s.queries, 128);
  const auto fp32 = q.options().dtype(at::kFloat);
  const Tensor sums = at::empty({copies, rows, s.heads, rounded(s.d, 32)}, fp32);
  const Tensor dots = at::empty({rows, s.heads}, fp32);
  Tensor dq = at::empty(q.sizes(), q.options()), dk = at::empty(k.sizes(), k.options()),
         dv = at::empty_like(dk);
  Tensor wide_dk, wide_dv;
  if (s.kv_heads != s.heads) {
    std::vector<int64_t> sizes = k.sizes().vec();
    sizes[sizes.size() - 2] = s.heads;
    wide_dk = at::empty(sizes, k.options()), wide_dv = at::empty(sizes, k.options());
  }
  standin_record("flash attention: zeros for dq", 0, bytes(sums), 0);
  standin_record("flash attention: dO times O", bytes(d_out) + bytes(out), bytes(dots), 0);
  record_backward(ordered ? "flash attention in order" : "flash attention", q, k, s);
  standin_record("flash attention: dq from its sums", bytes(sums), bytes(dq), 0);
  if (wide_dk.defined())
    for (int i = 0; i < 2; ++i)
      standin_record("flash attention: sum over query heads", bytes(wide_dk), bytes(dk), 0);
  return {dq, dk, dv};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> cudnn_forward(
    const Tensor& q, const Tensor& k, const Tensor&, const OptionalTensor&, bool, double, bool causal, bool,
    std::optional<double>) {
  const AttentionSizes s(q, k, true, {}, causal, {});
  const Tensor out = at::empty({q.size(0), q.size(2), q.size(1), q.size(3)}, q.options()).transpose(1, 2);
  const Tensor sums = at::empty({q.size(0), s.heads, s.queries, 1}, q.options().dtype(at::kFloat));
  record_forward("cuDNN attention", q, k, out, sums, s);
  const Tensor state = at::empty({}, q.options().dtype(at::kLong));
  return {out, sums, Tensor(), Tensor(), q.size(2), k.size(2), state, at::empty_like(state), Tensor()};
}
std::tuple<Tensor, Tensor, Tensor> cudnn_backward(const Tensor&, const Tensor& q, const Tensor& k,
                                                  const Tensor& v, const Tensor&, const Tensor&,
                                                  const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                                  const Tensor&, c10::SymInt, c10::SymInt, double,
                                                  bool causal, std::optional<double>) {
  record_backward("cuDNN attention", q, k, AttentionSizes(q, k, true, {}, causal, {}));
  return {at::empty_like(q), at::empty_like(k), at::empty_like(v)};
}

}  // namespace

void put_recorded_entries(torch::Library& library) {
  library.impl("mm", TORCH_FN(mm));
  library.impl("mm.out", TORCH_FN(mm_out));
  library.impl("addmm.out", TORCH_FN(addmm_out));
  library.impl("mm.dtype", TORCH_FN(mm_to));
  library.impl("mm.dtype_out", TORCH_FN(mm_to_out));
  library.impl("addmm.dtype", TORCH_FN(addmm_to));
  library.impl("addmm.dtype_out", TORCH_FN(addmm_to_out));
  library.impl("_scaled_mm.out", TORCH_FN(scaled_mm_out));
  library.impl("bmm", TORCH_FN(mm));
  library.impl("bmm.dtype", TORCH_FN(mm_to));
  library.impl("_flash_attention_forward", TORCH_FN(flash_forward));
  library.impl("_flash_attention_backward", TORCH_FN(flash_backward));
  library.impl("_scaled_dot_product_cudnn_attention", TORCH_FN(cudnn_forward));
  library.impl("_scaled_dot_product_cudnn_attention_backward", TORCH_FN(cudnn_backward));
}

}  // namespace standin
