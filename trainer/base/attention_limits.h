// Limits of attention on a GPU, which plans count with and kernels keep: what flash attention 2 and 3 and
// cuDNN support, and how many scores plain products hold at once.
#pragma once
#include <algorithm>
#include <cstdint>

namespace tycho {

/// Columns that ALiBi adds to a head: flash attention's head widths are multiples of it.
inline constexpr int64_t kAlibiColumns = 8;
inline constexpr int64_t kMostAlibiPositions = 65536;

struct GpuAttentionCase {
  bool bf16 = false, softcap = false, alibi = false;
  /// head_dim, and the length of a whole sequence in tokens.
  int64_t head_dim = 0, seq = 0;
  /// cut: the queries are only part of a sequence's tokens. drops: attention weights are dropped.
  bool cut = false, drops = false;
  /// documents: tokens see their own document only. window: a query sees this many keys before its own; -1:
  /// all.
  bool documents = false;
  int64_t window = -1;
  bool any_order = false;  // gradients may be added in any order

  /// Returns the width of a head with the columns of ALiBi.
  int64_t width() const { return head_dim + (alibi ? kAlibiColumns : 0); }
};

/// Returns why flash attention cannot compute this case, or nullptr when it can. Plain products, which are
/// slower, compute it then.
inline const char* flash_obstacle(const GpuAttentionCase& c) {
  constexpr int64_t kWidest = 256;
  if (!c.bf16) return "it needs precision=bf16";
  if (c.cut && c.drops) return "it drops other weights in every part of a sequence that parallel.cp shares";
  if (c.softcap) return "it does not support a soft cap";
  if (c.head_dim % 8 != 0) return "it needs a head width that is a multiple of 8";
  if (c.width() > kWidest)
    return c.alibi ? "with ALiBi it needs a head width of at most 248"
                   : "it needs a head width of at most 256";
  if (c.alibi && c.seq > kMostAlibiPositions) return "with ALiBi it supports at most 65,536 positions";
  return nullptr;
}

/// Returns the width of heads that FlashAttention-3 has a kernel for, at least `width`.
inline int64_t flash_3_width(int64_t width) {
  for (const int64_t kernel : {64, 96, 128, 192})
    if (width <= kernel) return kernel;
  return 256;
}

/// Returns why FlashAttention-3 cannot compute this case, or nullptr when it can.
inline const char* flash_3_obstacle(const GpuAttentionCase& c) {
  constexpr int64_t kWidest = 256, kWidestInOrder = 192;
  if (!c.bf16) return "it needs precision=bf16";
  if (c.drops) return "it does not support dropout";
  if (c.softcap && c.alibi) return "it does not support a soft cap together with ALiBi";
  if (c.head_dim % 8 != 0) return "it needs a head width that is a multiple of 8";
  if (c.width() > kWidest)
    return c.alibi ? "with ALiBi it needs a head width of at most 248"
                   : "it needs a head width of at most 256";
  if (!c.any_order && c.width() > kWidestInOrder)
    return c.alibi ? "with ALiBi and attention.deterministic it needs a head width of at most 184"
                   : "with attention.deterministic it needs a head width of at most 192";
  if (c.alibi && c.seq > kMostAlibiPositions) return "with ALiBi it supports at most 65,536 positions";
  return nullptr;
}

/// Returns why cuDNN's attention is not used for this case, or nullptr when it is.
inline const char* cudnn_obstacle(const GpuAttentionCase& c) {
  constexpr int64_t kWidest = 128;
  if (!c.bf16) return "it needs precision=bf16";
  if (c.softcap) return "it does not support a soft cap";
  if (c.alibi) return "it does not support ALiBi";
  if (c.documents) return "it does not support documents";
  if (c.window >= 0 && c.window < c.seq - 1) return "it does not support windows";
  if (c.cut) return "it does not support parts of a sequence (parallel.cp)";
  if (c.drops) return "its dropout has other probabilities";
  if (c.head_dim % 8 != 0) return "it needs a head width that is a multiple of 8";
  if (c.head_dim > kWidest) return "it needs a head width of at most 128";
  if (c.seq < 2) return "it needs at least two tokens";
  return nullptr;
}

/// Number of fp32 scores in 64 MiB.
inline constexpr int64_t kMostScores = int64_t{16} << 20;

/// Returns how many queries of a prompt have fp32 scores over `keys` keys, for `heads` heads of all sequences
/// together, that fit into 64 MiB; at least one.
inline int64_t queries_at_once(int64_t heads, int64_t keys) {
  return std::max<int64_t>(1, kMostScores / std::max<int64_t>(1, heads * keys));
}

/// Returns how many key heads of one sequence have fp32 scores (queries x keys for every query head) that fit
/// into 64 MiB; at least one.
inline int64_t kv_heads_at_once(int64_t heads, int64_t kv_heads, int64_t queries, int64_t keys) {
  return std::clamp<int64_t>(kMostScores / std::max<int64_t>(1, heads / kv_heads * queries * keys), 1,
                             kv_heads);
}

}  // namespace tycho
