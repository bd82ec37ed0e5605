// Adds up what flash attention or plain products allocate, by their formulas.
#include "trainer/layout/gpu_attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/base/attention_limits.h"

namespace tycho {
namespace {

constexpr int64_t kBf16 = 2, kFp32 = 4;

int64_t rounded(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/// Returns the number of fp32 sums of dq in a call: in a fixed order, as many blocks as the GPU has
/// multiprocessors add to sums of their own.
int64_t copies_of_dq(const AttentionSpec& a, BatchShape shape, int64_t num_sms) {
  if (a.any_order) return 1;
  const int64_t sequences = shape.batch * a.heads;
  return (num_sms + sequences - 1) / sequences;
}

/// Returns the bytes of the gradients of q, k and v as flash attention returns them, k's and v's first for
/// every query head; of its fp32 sums for q; and with ALiBi, of wider copies of q, k, v, out and its
/// gradient. Ranks that share sequences have some of the queries, and keys of nearly all tokens.
int64_t flash_bytes(const AttentionSpec& a, bool alibi, BatchShape shape, int64_t cp, int64_t copies_dq) {
  const int64_t d = a.head_dim + (alibi ? kAlibiColumns : 0);
  const int64_t of_query = a.heads + (alibi ? 3 * a.heads : 0);
  const int64_t of_key = 2 * (a.kv_heads + (a.kv_heads < a.heads ? a.heads : 0) + (alibi ? a.kv_heads : 0));
  const int64_t queries = shape.batch * rounded(shape.seq / cp, 128);
  return kBf16 * d * (shape.tokens() / cp * of_query + shape.tokens() * of_key) +
         kFp32 * queries * a.heads * (copies_dq * rounded(d, 32) + 1);
}

/// Returns the bytes for a ring, where a call has half of a rank's queries and half of its keys: results and
/// fp32 sums of such a call, the sums that these are added to, and with ALiBi wide copies of a rank's rows.
int64_t ring_flash_bytes(const AttentionSpec& a, bool alibi, BatchShape shape, int64_t cp,
                         int64_t copies_dq) {
  const int64_t d = a.head_dim + (alibi ? kAlibiColumns : 0), tokens = shape.tokens() / cp;
  const int64_t copies = alibi ? 3 * a.heads + 2 * a.kv_heads : 0;
  const int64_t returned = a.heads + 2 * (a.kv_heads + (a.kv_heads < a.heads ? a.heads : 0));
  const int64_t queries = shape.batch * rounded(shape.seq / cp / 2, 128);
  return kBf16 * d * (tokens * copies + tokens / 2 * returned) +
         kFp32 * queries * a.heads * (copies_dq * rounded(d, 32) + 1) +
         kFp32 * tokens / 2 * a.heads * a.head_dim;
}

/// Returns the bytes of FlashAttention-3's fp32 sums for the gradients of `queries` and `keys` tokens of each
/// sequence: of q, of shared k and v, and two numbers for each query. Rows are rounded up to the blocks of
/// its kernels for compute capability 9.0 (mha_bwd in hopper/flash_api.cpp of commit 0251105).
int64_t flash_3_sums(const AttentionSpec& a, int64_t width, int64_t sequences, int64_t queries,
                     int64_t keys) {
  const int64_t kernel = flash_3_width(width), key_block = kernel <= 128 ? 128 : kernel <= 192 ? 96 : 80;
  // A block has 96 or 128 queries for heads of 64, and 64 or 80 for heads of 128: soft caps, windows and the
  // causal order decide which.
  const int64_t rows = kernel <= 64    ? std::max(rounded(queries, 96), rounded(queries, 128))
                       : kernel == 128 ? std::max(rounded(queries, 64), rounded(queries, 80))
                                       : rounded(queries, 64);
  const int64_t shared = a.kv_heads < a.heads ? 2 * a.kv_heads * rounded(keys, key_block) * kernel : 0;
  return kFp32 * sequences * (a.heads * rows * (kernel + 2) + shared);
}

/// Returns the bytes of FlashAttention-3: of its sums; where it does not write gradients in their places, of
/// these in memory of their own; of what a ring adds them to; and with ALiBi, of wider copies of q, k, v, out
/// and its gradient.
int64_t flash_3_bytes(const AttentionSpec& a, bool alibi, BatchShape shape, const CpShape& cp) {
  const int64_t width = a.head_dim + (alibi ? kAlibiColumns : 0), parts = cp.ring ? 2 : 1;
  const int64_t own = shape.tokens() / cp.size, keys = cp.ring ? own : shape.tokens();
  const int64_t gradients = cp.size > 1 || alibi ? own / parts * a.heads + keys / parts * 2 * a.kv_heads : 0;
  const int64_t copies = alibi ? own * 3 * a.heads + keys * 2 * a.kv_heads : 0;
  const int64_t ring_sum = cp.ring ? kFp32 * own / 2 * a.heads * a.head_dim : 0;
  return kBf16 * width * (gradients + copies) + ring_sum +
         flash_3_sums(a, width, shape.batch, own / parts / shape.batch, keys / parts / shape.batch);
}

/// Returns the bytes of plain products: scores, weights and their gradient in fp32, weights and gradient in
/// bf16, and tanh or dropout.
int64_t product_bytes(const AttentionSpec& a, BatchShape shape, const CpShape& cp) {
  constexpr int64_t kMatricesFp32 = 5;
  const int64_t queries = shape.seq / cp.size, keys = cp.ring ? queries : shape.seq;
  const int64_t query_heads = kv_heads_at_once(a.heads, a.kv_heads, queries, keys) * (a.heads / a.kv_heads);
  // A mask is drawn for all keys, one head at a time.
  const int64_t mask = cp.ring && a.dropout > 0 ? kFp32 * queries * shape.seq : 0;
  return kMatricesFp32 * kFp32 * query_heads * queries * keys + mask;
}

bool has_alibi(const DecoderSpec& s, const BlockSpec& block) {
  return s.positions.alibi_bias_max > 0 && block.positions;
}

/// Returns the case of a block of the model, without documents.
GpuAttentionCase case_of(const DecoderSpec& s, const BlockSpec& block, bool bf16, int64_t seq, int64_t cp) {
  return {.bf16 = bf16,
          .softcap = s.attention.softcap > 0,
          .alibi = has_alibi(s, block),
          .head_dim = s.attention.head_dim,
          .seq = seq,
          .cut = cp > 1,
          .drops = s.attention.dropout > 0,
          .window = block.window,
          .any_order = s.attention.any_order};
}

bool is_flash_3(const DecoderSpec& s, const GpuAttentionCase& block) {
  return s.attention.flash_3 && flash_3_obstacle(block) == nullptr;
}

}  // namespace

bool has_fused_attention(const DecoderSpec& s, const BlockSpec& block, bool bf16, int64_t seq, int64_t cp) {
  const GpuAttentionCase own = case_of(s, block, bf16, seq, cp);
  return is_flash_3(s, own) || flash_obstacle(own) == nullptr;
}

const char* gpu_attention_obstacle(const DecoderSpec& s, bool bf16, int64_t seq, int64_t cp) {
  for (const BlockSpec& block : s.blocks)
    if (!has_fused_attention(s, block, bf16, seq, cp))
      return flash_obstacle(case_of(s, block, bf16, seq, cp));
  return nullptr;
}

const char* flash_3_attention_obstacle(const DecoderSpec& s, bool bf16, int64_t seq, int64_t cp) {
  for (const BlockSpec& block : s.blocks)
    if (const char* obstacle = flash_3_obstacle(case_of(s, block, bf16, seq, cp))) return obstacle;
  return nullptr;
}

bool uses_flash_3(const DecoderSpec& s, bool bf16, int64_t seq, int64_t cp) {
  return std::any_of(s.blocks.begin(), s.blocks.end(), [&](const BlockSpec& block) {
    GpuAttentionCase evaluated = case_of(s, block, bf16, seq, cp);
    evaluated.drops = false;
    return is_flash_3(s, evaluated);
  });
}

const char* cudnn_attention_obstacle(const DecoderSpec& s, bool bf16, int64_t seq, int64_t cp) {
  for (const BlockSpec& block : s.blocks)
    if (const char* obstacle = cudnn_obstacle(case_of(s, block, bf16, seq, cp))) return obstacle;
  return nullptr;
}

GpuAttentionBytes gpu_attention_bytes(const DecoderSpec& s, bool bf16, BatchShape shape, const CpShape& cp,
                                      int64_t num_sms) {
  const int64_t copies = copies_of_dq(s.attention, shape, num_sms);
  GpuAttentionBytes bytes;
  for (const BlockSpec& block : s.blocks) {
    const bool alibi = has_alibi(s, block), flash = has_fused_attention(s, block, bf16, shape.seq, cp.size);
    if (is_flash_3(s, case_of(s, block, bf16, shape.seq, cp.size))) {
      bytes.passing = std::max(bytes.passing, flash_3_bytes(s.attention, alibi, shape, cp));
      continue;
    }
    if (flash) bytes.copies = copies;
    const auto of_flash = cp.ring ? ring_flash_bytes : flash_bytes;
    bytes.passing = std::max(bytes.passing, flash ? of_flash(s.attention, alibi, shape, cp.size, copies)
                                                  : product_bytes(s.attention, shape, cp));
  }
  return bytes;
}

// LibTorch's own choice of a kernel looks at this; calls of the kernel itself, such as ours, are not checked.
std::string flash_gradient_problem(const DecoderSpec& s, bool bf16, int64_t seq, int64_t cp,
                                   const GpuShape& gpu) {
  const int capability = gpu.compute_capability;
  const bool is_small = (capability >= 86 && capability <= 89) || capability / 10 == 12;
  if (!is_small) return "";
  for (const BlockSpec& block : s.blocks) {
    const bool alibi = has_alibi(s, block), drops = s.attention.dropout > 0;
    const int64_t width = s.attention.head_dim + (alibi ? kAlibiColumns : 0);
    if (width <= 192 || (width > 224 && !drops) || flash_obstacle(case_of(s, block, bf16, seq, cp))) continue;
    return fmt::format(
        "expected heads that flash attention has a gradient for, got a width of {}{}{}: with compute "
        "capability {}.{} at most 192{}. Use narrower heads{}, or precision=fp32, which multiplies without "
        "flash "
        "attention,",
        s.attention.head_dim, alibi ? " and 8 columns of ALiBi" : "", drops ? " with dropout" : "",
        capability / 10, capability % 10, drops ? "" : ", or more than 224",
        drops ? " or no dropout of attention" : "");
  }
  return "";
}

}  // namespace tycho
