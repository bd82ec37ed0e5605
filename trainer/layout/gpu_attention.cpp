// Adds up what flash attention or plain products allocate, by their formulas.
#include "trainer/layout/gpu_attention.h"

#include <algorithm>

#include "trainer/base/attention_limits.h"

namespace tycho {
namespace {

constexpr int64_t kBf16 = 2, kFp32 = 4;

int64_t rounded(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/// Gradients of q, k and v as flash attention returns them, k's and v's first for every query head; its fp32
/// sums for q; with ALiBi, wider copies of q, k, v, out and its gradient. Ranks that share sequences have
/// some of the queries, and keys of nearly all tokens.
int64_t flash_bytes(const DecoderSpec& s, bool alibi, BatchShape shape, int64_t cp) {
  const int64_t d = s.head_dim + (alibi ? kAlibiColumns : 0);
  const int64_t of_query = s.heads + (alibi ? 3 * s.heads : 0);
  const int64_t of_key = 2 * (s.kv_heads + (s.kv_heads < s.heads ? s.heads : 0) + (alibi ? s.kv_heads : 0));
  const int64_t queries = shape.batch * rounded(shape.seq / cp, 128);
  return kBf16 * d * (shape.tokens() / cp * of_query + shape.tokens() * of_key) +
         kFp32 * queries * s.heads * (rounded(d, 32) + 1);
}

/// Products, scores, weights and their gradient in fp32, weights and gradient in bf16, tanh or dropout on
/// top.
int64_t product_bytes(const DecoderSpec& s, BatchShape shape, int64_t cp) {
  constexpr int64_t kMatricesFp32 = 5;
  const int64_t queries = shape.seq / cp;
  const int64_t query_heads =
      kv_heads_at_once(s.heads, s.kv_heads, queries, shape.seq) * (s.heads / s.kv_heads);
  return kMatricesFp32 * kFp32 * query_heads * queries * shape.seq;
}

/// Of blocks with or without ALiBi.
const char* obstacle_of(const DecoderSpec& s, bool alibi, bool bf16, int64_t seq, int64_t cp) {
  return flash_obstacle({.bf16 = bf16,
                         .softcap = s.attn_softcap > 0,
                         .alibi = alibi,
                         .head_dim = s.head_dim,
                         .seq = seq,
                         .cut = cp > 1,
                         .drops = s.attn_dropout > 0});
}

bool has_alibi(const DecoderSpec& s, const BlockSpec& block) {
  return s.alibi_bias_max > 0 && block.positions;
}

}  // namespace

const char* gpu_attention_obstacle(const DecoderSpec& s, bool bf16, int64_t seq, int64_t cp) {
  for (const BlockSpec& block : s.blocks)
    if (const char* obstacle = obstacle_of(s, has_alibi(s, block), bf16, seq, cp)) return obstacle;
  return nullptr;
}

GpuAttentionBytes gpu_attention_bytes(const DecoderSpec& s, bool bf16, BatchShape shape, int64_t cp) {
  GpuAttentionBytes bytes;
  for (const BlockSpec& block : s.blocks) {
    const bool alibi = has_alibi(s, block), flash = !obstacle_of(s, alibi, bf16, shape.seq, cp);
    if (flash) bytes.kept += kFp32 * shape.tokens() / cp * s.heads;
    bytes.passing =
        std::max(bytes.passing, flash ? flash_bytes(s, alibi, shape, cp) : product_bytes(s, shape, cp));
  }
  return bytes;
}

}  // namespace tycho
