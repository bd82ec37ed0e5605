// A library with the operators of FlashAttention-3 (hopper/flash_api.cpp of commit 0251105): their schemas
// and checks, computed on the CPU. TYCHO_STANDIN_FLASH_3=old gives them an older version's arguments.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <tuple>

#include "tests/standin_gpu/plugin/attention_on_host.h"
#include "tests/standin_gpu/plugin/host_views.h"
#include "tests/standin_gpu/plugin/recorded_attention.h"
#include "tests/standin_gpu/runtime/record.h"
#include "tests/standin_gpu/runtime/state.h"

/// Names a function of Python, as the real library does: nothing here has it, and nothing calls it.
extern "C" void* PyModule_Create2(void* definition, int version);
extern "C" __attribute__((visibility("default"))) void* PyInit__C() { return PyModule_Create2(nullptr, 3); }

namespace standin {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using OptionalInt = std::optional<int64_t>;

constexpr const char* kForward =
    "fwd(Tensor q, Tensor k, Tensor v, Tensor(k_new!)? k_new = None, Tensor(v_new!)? v_new = None, "
    "Tensor? q_v = None, Tensor(out!)? out = None, Tensor? cu_seqlens_q = None, Tensor? cu_seqlens_k = None, "
    "Tensor? cu_seqlens_k_new = None, Tensor? seqused_q = None, Tensor? seqused_k = None, "
    "int? max_seqlen_q = None, int? max_seqlen_k = None, Tensor? page_table = None, "
    "Tensor? kv_batch_idx = None, Tensor? leftpad_k = None, Tensor? rotary_cos = None, "
    "Tensor? rotary_sin = None, Tensor? seqlens_rotary = None, Tensor? q_descale = None, "
    "Tensor? k_descale = None, Tensor? v_descale = None, float? softmax_scale = None, "
    "bool is_causal = False, int window_size_left = -1, int window_size_right = -1, "
    "int attention_chunk = 0, float softcap = 0.0, bool is_rotary_interleaved = False, "
    "Tensor? scheduler_metadata = None, int num_splits = 0, bool? pack_gqa = None, int sm_margin = 0) -> "
    "(Tensor(out!), Tensor, Tensor, Tensor)";
constexpr const char* kBackward =
    "bwd(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor softmax_lse, Tensor(dq!)? dq = None, "
    "Tensor(dk!)? dk = None, Tensor(dv!)? dv = None, Tensor? cu_seqlens_q = None, "
    "Tensor? cu_seqlens_k = None, Tensor? seqused_q = None, Tensor? seqused_k = None, "
    "int? max_seqlen_q = None, int? max_seqlen_k = None, float? softmax_scale = None, "
    "bool is_causal = False, int window_size_left = -1, int window_size_right = -1, float softcap = 0.0, "
    "bool deterministic = False, int sm_margin = 0) -> (Tensor, Tensor, Tensor, Tensor, Tensor)";
/// Has window_size for two numbers, and wants a tensor that we do not have.
constexpr const char* kOldBackward =
    "bwd(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor softmax_lse, "
    "Tensor rng_state, Tensor? dq = None, Tensor? dk = None, Tensor? dv = None, Tensor? cu_seqlens_q = None, "
    "Tensor? cu_seqlens_k = None, "
    "int? max_seqlen_q = None, int? max_seqlen_k = None, float softmax_scale = 1.0, bool is_causal = False, "
    "int[] window_size = [], float softcap = 0.0) -> Tensor[]";

struct Starts {
  OptionalTensor q, k;
  OptionalInt longest_q, longest_k;

  void check() const {
    TORCH_CHECK(q.has_value() == k.has_value(), "the stand-in packs queries and keys together");
    if (!q) return;
    for (const Tensor* x : {&*q, &*k}) {
      TORCH_CHECK(x->scalar_type() == at::kInt, "cu_seqlens must have dtype torch.int32");
      TORCH_CHECK(x->is_cuda() && x->is_contiguous(), "cu_seqlens must be contiguous, on CUDA");
    }
    TORCH_CHECK(longest_q && longest_k, "max_seqlen must be provided if cu_seqlens is provided");
  }
  int64_t sequences(const Tensor& query) const { return q ? q->numel() - 1 : query.size(0); }
};

int64_t kernel_width(int64_t width) {
  return width <= 64 ? 64 : width <= 96 ? 96 : width <= 128 ? 128 : width <= 192 ? 192 : 256;
}

void check_heads(const Tensor& query, const Tensor& key, const Tensor& value, const Starts& starts) {
  for (const Tensor* x : {&query, &key, &value}) {
    TORCH_CHECK(x->is_cuda(), "expected tensors on CUDA");
    TORCH_CHECK(x->scalar_type() == at::kBFloat16, "the stand-in's FlashAttention-3 has bf16 only");
    TORCH_CHECK(x->stride(-1) == 1, "Input tensor must have contiguous last dimension");
    TORCH_CHECK(x->dim() == (starts.q ? 3 : 4), "expected (b, s, h, d), or (total, h, d) with cu_seqlens");
    // TMA's rule, which the library leaves to its driver.
    TORCH_CHECK(reinterpret_cast<uintptr_t>(x->const_data_ptr()) % 16 == 0, "expected rows of 16 bytes");
    for (int64_t i = 0; i + 1 < x->dim(); ++i)
      TORCH_CHECK(x->stride(i) % 8 == 0, "expected rows of 16 bytes");
  }
  TORCH_CHECK(query.size(-1) % 8 == 0, "head_size should be a multiple of 8");
  TORCH_CHECK(query.size(-1) <= 256, "FlashAttention forward only supports head dimension at most 256");
  TORCH_CHECK(query.size(-2) % key.size(-2) == 0,
              "Number of heads in key/value must divide number of heads in query");
  TORCH_CHECK(key.sizes() == value.sizes(), "expected keys and values of one shape");
  starts.check();
}

AttentionRules rules_of(std::optional<double> scale, bool causal, int64_t left, int64_t right,
                        double softcap) {
  return {.causal = causal, .scale = scale, .left = left, .right = right, .softcap = softcap};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> forward(
    const Tensor& q, const Tensor& k, const Tensor& v, const OptionalTensor& k_new, const OptionalTensor&,
    const OptionalTensor&, const OptionalTensor& given_out, const OptionalTensor& starts_q,
    const OptionalTensor& starts_k, const OptionalTensor&, const OptionalTensor& used_q,
    const OptionalTensor& used_k, OptionalInt longest_q, OptionalInt longest_k, const OptionalTensor& pages,
    const OptionalTensor&, const OptionalTensor&, const OptionalTensor& cos, const OptionalTensor&,
    const OptionalTensor&, const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
    std::optional<double> scale, bool causal, int64_t left, int64_t right, int64_t chunk, double softcap,
    bool, const OptionalTensor& metadata, int64_t num_splits, std::optional<bool>, int64_t) {
  TORCH_CHECK(!k_new && !given_out && !used_q && !used_k && !pages && !cos && !metadata && chunk == 0,
              "the stand-in's FlashAttention-3 trains only");
  TORCH_CHECK(num_splits == 1, "the stand-in's FlashAttention-3 adds no parts of the keys");
  const Starts starts = {starts_q, starts_k, longest_q, longest_k};
  check_heads(q, k, v, starts);
  if (standin_records()) {
    const AttentionSizes s(q, k, false, starts_q, causal, left);
    const Tensor out = at::empty(q.sizes(), q.options()), sums = statistics_of(q, s);
    standin_record(starts_q ? "FlashAttention-3: order of tiles" : "FlashAttention-3: zeros for a counter", 0,
                   4, 0);
    record_forward("FlashAttention-3", q, k, out, sums, s);
    return {out, sums, Tensor(), Tensor()};
  }
  called("FlashAttention-3");
  const auto [out, sums] = HostAttention(q, k, v, starts_q.value_or(Tensor()), starts_k.value_or(Tensor()),
                                         rules_of(scale, causal, left, right, softcap))
                               .forward();
  std::tuple<Tensor, Tensor, Tensor, Tensor> results = {on_device(out.to(q.scalar_type()).view(q.sizes()), q),
                                                        on_device(sums, q), Tensor(), Tensor()};
  tell("FlashAttention-3", {q, k, v, starts_q.value_or(Tensor()), starts_k.value_or(Tensor())},
       {std::get<0>(results), std::get<1>(results)});
  return results;
}

/// Memory that the backward takes, with what it gives back.
struct Workspace {
  Tensor dots, log2_sums, dq, dk, dv;
};
Workspace workspace(const Tensor& q, const Tensor& k, const Starts& starts, bool causal, double softcap) {
  const int64_t width = kernel_width(q.size(-1)), sequences = starts.sequences(q), heads = q.size(-2),
                kv_heads = k.size(-2);
  const int64_t query_block = width == 64                               ? (causal && softcap > 0 ? 96 : 128)
                              : width == 128 && !causal && softcap == 0 ? 80
                                                                        : 64,
                key_block = width <= 128   ? 128
                            : width <= 192 ? 96
                                           : 80;
  const auto rows = [&](const Tensor& x, int64_t block) {
    return starts.q ? rounded(x.size(0) + sequences * block, block) : sequences * rounded(x.size(1), block);
  };
  const auto fp32 = q.options().dtype(at::kFloat);
  const int64_t queries = rows(q, query_block), keys = rows(k, key_block);
  Workspace made = {at::empty({heads, queries}, fp32), at::empty({heads, queries}, fp32),
                    at::empty({heads, queries * width}, fp32), Tensor(), Tensor()};
  if (kv_heads == heads) return made;
  made.dk = at::empty({kv_heads, keys * width}, fp32), made.dv = at::empty({kv_heads, keys * width}, fp32);
  return made;
}

void record_backward_of(const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& out,
                        const Workspace& work, const AttentionSizes& s, bool deterministic) {
  if (work.dk.defined())
    for (int i = 0; i < 2; ++i) standin_record("FlashAttention-3: zeros for dk or dv", 0, bytes(work.dk), 0);
  standin_record("FlashAttention-3: dO times O, zeros for dq", bytes(dout) + bytes(out),
                 bytes(work.dots) + bytes(work.log2_sums) + bytes(work.dq), 0);
  record_backward(deterministic ? "FlashAttention-3 in order" : "FlashAttention-3", q, k, s);
  standin_record("FlashAttention-3: dq from its sums", bytes(work.dq), bytes(q), 0);
  if (work.dk.defined())
    for (int i = 0; i < 2; ++i)
      standin_record("FlashAttention-3: dk or dv from its sums", bytes(work.dk), bytes(k), 0);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> backward(
    const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
    const Tensor& log_sum_exp, const OptionalTensor& dq, const OptionalTensor& dk, const OptionalTensor& dv,
    const OptionalTensor& starts_q, const OptionalTensor& starts_k, const OptionalTensor&,
    const OptionalTensor&, OptionalInt longest_q, OptionalInt longest_k, std::optional<double> scale,
    bool causal, int64_t left, int64_t right, double softcap, bool deterministic, int64_t) {
  const Starts starts = {starts_q, starts_k, longest_q, longest_k};
  check_heads(q, k, v, starts);
  check_heads(out, k, v, starts), check_heads(dout, k, v, starts);
  TORCH_CHECK(out.sizes() == q.sizes() && dout.sizes() == q.sizes(), "expected out and dout like q");
  TORCH_CHECK(log_sum_exp.scalar_type() == at::kFloat && log_sum_exp.is_contiguous() &&
                  log_sum_exp.numel() == q.numel() / q.size(-1),
              "expected a number for each query");
  TORCH_CHECK(!deterministic || kernel_width(q.size(-1)) < 256,
              "Deterministic backward not supported for hdim 256.");
  TORCH_CHECK(deterministic || std::getenv("TYCHO_STANDIN_ANY_ORDER") != nullptr,
              "the stand-in's FlashAttention-3 adds in any order unless it is told");
  TORCH_CHECK(dq && dk && dv, "the stand-in is given memory for gradients");
  check_heads(*dq, *dk, *dv, starts);
  TORCH_CHECK(dq->sizes() == q.sizes() && dk->sizes() == k.sizes(), "expected gradients like the inputs");
  const Workspace work = workspace(q, k, starts, causal, softcap);
  if (standin_records()) {
    record_backward_of(dout, q, k, out, work, AttentionSizes(q, k, false, starts_q, causal, left),
                       deterministic);
  } else {
    const HostAttention attention(q, k, v, starts_q.value_or(Tensor()), starts_k.value_or(Tensor()),
                                  rules_of(scale, causal, left, right, softcap));
    const HostGradients d = attention.backward(dout, out, log_sum_exp);
    put(*dq, d.q), put(*dk, d.k), put(*dv, d.v);
    tell("FlashAttention-3 backward",
         {dout, q, k, v, out, log_sum_exp, starts_q.value_or(Tensor()), starts_k.value_or(Tensor())},
         {*dq, *dk, *dv, work.dots, work.log2_sums, work.dq, work.dk, work.dv});
  }
  return {work.dots, work.log2_sums, work.dq, work.dk, work.dv};
}

bool is_old() {
  const char* version = std::getenv("TYCHO_STANDIN_FLASH_3");
  return version != nullptr && std::string(version) == "old";
}

TORCH_LIBRARY(flash_attn_3, m) {
  m.def(kForward);
  m.def(is_old() ? kOldBackward : kBackward);
}
TORCH_LIBRARY_IMPL(flash_attn_3, CUDA, m) {
  m.impl("fwd", TORCH_FN(forward));
  if (!is_old()) m.impl("bwd", TORCH_FN(backward));
}

}  // namespace
}  // namespace standin
