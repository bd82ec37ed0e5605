// Operators that LibTorch has on GPUs only: products with sums in fp32, and attention of flash and cuDNN
// written out.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <tuple>

#include "tests/standin_gpu/plugin/attention_on_host.h"
#include "tests/standin_gpu/plugin/boxed.h"
#include "tests/standin_gpu/plugin/host_views.h"
#include "tests/standin_gpu/plugin/recorded_entries.h"
#include "tests/standin_gpu/runtime/record.h"
#include "tests/standin_gpu/runtime/state.h"

namespace standin {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

const std::array<const char*, 10> kOwn = {"_scaled_mm.out",
                                          "mm.dtype",
                                          "mm.dtype_out",
                                          "addmm.dtype",
                                          "addmm.dtype_out",
                                          "bmm.dtype",
                                          "_flash_attention_forward",
                                          "_flash_attention_backward",
                                          "_scaled_dot_product_cudnn_attention",
                                          "_scaled_dot_product_cudnn_attention_backward"};

/// LibTorch 2.11 adds to numbers of the sum's type; up to 2.9 the type of the operands was asked for:
/// TYCHO_STANDIN_TORCH=2.9.
void check_added(const Tensor& c, const Tensor& a, at::ScalarType out) {
  const char* release = std::getenv("TYCHO_STANDIN_TORCH");
  const bool is_old = release != nullptr && std::string(release) == "2.9";
  TORCH_CHECK(!is_old || c.scalar_type() == a.scalar_type(),
              "self and mat2 must have the same dtype, but got ", c10::toString(c.scalar_type()), " and ",
              c10::toString(a.scalar_type()));
  TORCH_CHECK(c.scalar_type() == out || c.scalar_type() == a.scalar_type(),
              "self dtype must match either out_dtype or mat1 dtype");
}

Tensor mm(const Tensor& a, const Tensor& b, at::ScalarType type) {
  Tensor out = on_device(at::mm(wide(a), wide(b)).to(type), a);
  tell("aten::mm", {a, b}, {out});
  return out;
}
Tensor& mm_out(const Tensor& a, const Tensor& b, at::ScalarType, Tensor& out) {
  tell("aten::mm", {a, b}, {out});
  put(out, at::mm(wide(a), wide(b)));
  return out;
}
Tensor& addmm_out(const Tensor& c, const Tensor& a, const Tensor& b, at::ScalarType type,
                  const at::Scalar& beta, const at::Scalar& alpha, Tensor& out) {
  check_added(c, a, type);
  tell("aten::addmm", {c, a, b}, {out});
  put(out, wide(c) * beta + at::mm(wide(a), wide(b)) * alpha);
  return out;
}
Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, at::ScalarType type, const at::Scalar& beta,
             const at::Scalar& alpha) {
  check_added(c, a, type);
  Tensor out = on_device((wide(c) * beta + at::mm(wide(a), wide(b)) * alpha).to(type), a);
  tell("aten::addmm", {c, a, b}, {out});
  return out;
}
Tensor bmm(const Tensor& a, const Tensor& b, at::ScalarType type) {
  Tensor out = on_device(at::bmm(wide(a), wide(b)).to(type), a);
  tell("aten::bmm", {a, b}, {out});
  return out;
}

/// LibTorch's rules for factors of rows and columns.
Tensor& scaled_mm_out(const Tensor& a, const Tensor& b, const Tensor& factor_a, const Tensor& factor_b,
                      const OptionalTensor& bias, const OptionalTensor& scale_result,
                      std::optional<at::ScalarType> type, bool, Tensor& out) {
  TORCH_CHECK(!bias && !scale_result && type == at::kBFloat16 && out.scalar_type() == at::kBFloat16,
              "rowwise scaling gives bf16, without a bias");
  TORCH_CHECK(a.is_contiguous() && b.t().is_contiguous(), "mat1 must be row-major, mat2 column-major");
  TORCH_CHECK(a.size(1) % 16 == 0 && b.size(1) % 16 == 0, "dims must be multiples of 16");
  TORCH_CHECK(factor_a.sizes() == at::IntArrayRef({a.size(0), 1}) && factor_a.is_contiguous() &&
                  factor_b.sizes() == at::IntArrayRef({1, b.size(1)}) && factor_b.is_contiguous() &&
                  factor_a.scalar_type() == at::kFloat && factor_b.scalar_type() == at::kFloat,
              "expected factors of rows and columns");
  TORCH_CHECK(b.scalar_type() == at::kFloat8_e4m3fn, "mat2 must be e4m3");
  tell("aten::_scaled_mm", {a, b, factor_a, factor_b}, {out});
  put(out, at::mm(wide(a), wide(b)) * on_cpu(factor_a) * on_cpu(factor_b));
  return out;
}

/// Returns what flash attention returns, without a note of the call.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> attention_results(const Tensor& query, const Tensor& key,
                                                                     const Tensor& value,
                                                                     const Tensor& starts_q,
                                                                     const Tensor& starts_k,
                                                                     AttentionRules rules) {
  if (rules.dropout > 0) rules.seed = at::globalContext().defaultGenerator(query.device()).current_seed();
  const auto [out, log_sum_exp] = HostAttention(query, key, value, starts_q, starts_k, rules).forward();
  Tensor state = at::zeros({2}, at::kLong);
  state.mutable_data_ptr<int64_t>()[0] = static_cast<int64_t>(rules.seed);
  std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> results = {
      on_device(out.to(query.scalar_type()).view(query.sizes()), query), on_device(log_sum_exp, query),
      on_device(state, query), on_device(at::zeros({}, at::kLong), query),
      on_device(at::empty({0}, query.scalar_type()), query)};
  tell("attention", {query, key, value, starts_q, starts_k},
       {std::get<0>(results), std::get<1>(results), std::get<2>(results)});
  return results;
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> flash_forward(
    const Tensor& query, const Tensor& key, const Tensor& value, const OptionalTensor& starts_q,
    const OptionalTensor& starts_k, int64_t, int64_t, double dropout_p, bool causal, bool,
    std::optional<double> scale, std::optional<int64_t> left, std::optional<int64_t> right,
    const OptionalTensor&, const OptionalTensor&) {
  called("flash attention");
  return attention_results(query, key, value, starts_q.value_or(Tensor()), starts_k.value_or(Tensor()),
                           {dropout_p, causal, scale, left, right});
}

/// Memory that flash attention takes for dq, one fp32 sum, or in a fixed order: an fp32 sum for each of
/// ceil(multiprocessors / (sequences x heads)) groups of blocks.
Tensor workspace_of_dq(const Tensor& query, size_t num_spans) {
  const auto rounded = [](int64_t n, int64_t to) { return (n + to - 1) / to * to; };
  const auto sequences = static_cast<int64_t>(num_spans);
  const int64_t heads = query.size(-2), pairs = sequences * heads;
  const int64_t copies = at::globalContext().deterministicAlgorithms() ? (num_sms() + pairs - 1) / pairs : 1;
  const int64_t rows =
      query.dim() == 3 ? query.size(0) + 128 * sequences : query.size(0) * rounded(query.size(1), 128);
  return at::empty({copies, rows, heads, rounded(query.size(-1), 32)}, query.options().dtype(at::kFloat));
}

/// Gradients of queries, keys and values, however they are added.
std::tuple<Tensor, Tensor, Tensor> gradients_of(const HostAttention& attention, const Tensor& d_out,
                                                const Tensor& query, const Tensor& key, const Tensor& value,
                                                const Tensor& out, const Tensor& log_sum_exp,
                                                const Tensor& state) {
  const HostGradients d = attention.backward(d_out, out, log_sum_exp);
  std::tuple<Tensor, Tensor, Tensor> results = {on_device(d.q, query), on_device(d.k, key),
                                                on_device(d.v, value)};
  tell("attention backward", {d_out, query, key, value, out, log_sum_exp, state},
       {std::get<0>(results), std::get<1>(results), std::get<2>(results)});
  return results;
}
uint64_t seed_of(const Tensor& state) {
  return static_cast<uint64_t>(on_cpu(state).const_data_ptr<int64_t>()[0]);
}

std::tuple<Tensor, Tensor, Tensor> flash_backward(const Tensor& d_out, const Tensor& query, const Tensor& key,
                                                  const Tensor& value, const Tensor& out,
                                                  const Tensor& log_sum_exp, const Tensor& starts_q,
                                                  const Tensor& starts_k, int64_t, int64_t, double dropout_p,
                                                  bool causal, const Tensor& state, const Tensor&,
                                                  std::optional<double> scale, std::optional<int64_t> left,
                                                  std::optional<int64_t> right) {
  TORCH_CHECK(
      at::globalContext().deterministicAlgorithms() || std::getenv("TYCHO_STANDIN_ANY_ORDER") != nullptr,
      "the stand-in's flash attention adds in any order unless deterministic algorithms are on");
  const HostAttention attention(query, key, value, starts_q, starts_k,
                                {dropout_p, causal, scale, left, right, /*softcap=*/0, seed_of(state)});
  const Tensor sums_of_dq = workspace_of_dq(query, attention.num_sequences());
  return gradients_of(attention, d_out, query, key, value, out, log_sum_exp, state);
}

/// Checks of sdp_utils.cpp, which a call of the operator itself does not get; of the rest, what cuDNN's
/// graphs refuse.
void check_cudnn(const Tensor& query, const Tensor& key, const Tensor& value, const OptionalTensor& bias,
                 double dropout_p, bool causal) {
  TORCH_CHECK(!at::globalContext().deterministicAlgorithms(), "cuDNN SDPA is not deterministic.");
  TORCH_CHECK(query.scalar_type() == at::kHalf || query.scalar_type() == at::kBFloat16,
              "expected half or bf16");
  TORCH_CHECK(causal && dropout_p == 0 && !(bias.has_value() && bias->defined()),
              "the stand-in's cuDNN has causal attention only");
  const int64_t d = query.size(3);
  TORCH_CHECK(query.dim() == 4 && query.size(0) <= 65535 && query.size(1) <= 65535,
              "batch or heads too large");
  TORCH_CHECK(d <= 128, "head_dim should be no more than 128");
  TORCH_CHECK(d % 8 == 0, "head_dim should be a multiple of 8");
  TORCH_CHECK(key.size(2) != 1, "cudnn SDPA does not support key/value sequence length 1.");
  TORCH_CHECK(query.size(1) % key.size(1) == 0 && key.sizes() == value.sizes(), "expected shared key heads");
  for (const Tensor* x : {&query, &key, &value}) {
    TORCH_CHECK(x->stride(3) == 1, "expected a contiguous last dimension");
    TORCH_CHECK(reinterpret_cast<uintptr_t>(x->const_data_ptr()) % 16 == 0, "expected rows of 16 bytes");
    for (int i = 0; i < 3; ++i) TORCH_CHECK(x->stride(i) % 8 == 0, "expected rows of 16 bytes");
  }
}
Tensor by_row(const Tensor& x_BHTd) { return x_BHTd.transpose(1, 2); }

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> cudnn_forward(
    const Tensor& query, const Tensor& key, const Tensor& value, const OptionalTensor& bias, bool,
    double dropout_p, bool causal, bool, std::optional<double> scale) {
  check_cudnn(query, key, value, bias, dropout_p, causal);
  auto [out, log_sum_exp, state, unused, mask] = attention_results(
      by_row(query), by_row(key), by_row(value), {}, {}, {.causal = causal, .scale = scale});
  called("cuDNN's attention");
  return {
      by_row(out), log_sum_exp.unsqueeze(-1), Tensor(), Tensor(), query.size(2), key.size(2), state, unused,
      Tensor()};
}
std::tuple<Tensor, Tensor, Tensor> cudnn_backward(const Tensor& d_out, const Tensor& query, const Tensor& key,
                                                  const Tensor& value, const Tensor& out,
                                                  const Tensor& log_sum_exp, const Tensor& seed,
                                                  const Tensor&, const Tensor& bias, const Tensor&,
                                                  const Tensor&, c10::SymInt max_q, c10::SymInt max_k,
                                                  double dropout_p, bool causal,
                                                  std::optional<double> scale) {
  check_cudnn(query, key, value, bias, dropout_p, causal);
  TORCH_CHECK(log_sum_exp.dim() == 4 && log_sum_exp.size(3) == 1 && max_q == query.size(2) && max_k == max_q,
              "expected the results of the forward pass");
  const HostAttention attention(by_row(query), by_row(key), by_row(value), {}, {},
                                {.causal = causal, .scale = scale});
  auto [dq, dk, dv] = gradients_of(attention, by_row(d_out), by_row(query), by_row(key), by_row(value),
                                   by_row(out), log_sum_exp.squeeze(-1), seed);
  return {by_row(dq), by_row(dk), by_row(dv)};
}

}  // namespace

bool has_own_entry(const std::string& name) {
  for (const char* own : kOwn)
    if (name == std::string("aten::") + own) return true;
  for (const char* product : {"aten::mm", "aten::mm.out", "aten::addmm.out", "aten::bmm"})
    if (standin_records() && name == product) return true;
  return false;
}

void put_own_entries(torch::Library& library) {
  if (standin_records()) return put_recorded_entries(library);
  library.impl("_scaled_mm.out", TORCH_FN(scaled_mm_out));
  library.impl("mm.dtype", TORCH_FN(mm));
  library.impl("mm.dtype_out", TORCH_FN(mm_out));
  library.impl("addmm.dtype", TORCH_FN(addmm));
  library.impl("addmm.dtype_out", TORCH_FN(addmm_out));
  library.impl("bmm.dtype", TORCH_FN(bmm));
  library.impl("_flash_attention_forward", TORCH_FN(flash_forward));
  library.impl("_flash_attention_backward", TORCH_FN(flash_backward));
  library.impl("_scaled_dot_product_cudnn_attention", TORCH_FN(cudnn_forward));
  library.impl("_scaled_dot_product_cudnn_attention_backward", TORCH_FN(cudnn_backward));
}

}  // namespace standin
