// Limits of attention on a GPU, which plans count with and kernels keep: what flash attention supports, and
// how many scores plain products hold at once.
#pragma once
#include <algorithm>
#include <cstdint>

namespace tycho {

/// Columns that ALiBi adds to a head: flash attention's head widths are multiples of it.
inline constexpr int64_t kAlibiColumns = 8;
inline constexpr int64_t kMostAlibiPositions = 65536;

struct FlashCase {
  bool bf16 = false, softcap = false, alibi = false;
  int64_t head_dim = 0, seq = 0;    // of whole sequences
  bool cut = false, drops = false;  // queries are some of a sequence's tokens; attention weights are dropped
};

/// Why flash attention cannot compute it and plain products do, which are slower; nullptr when it can.
inline const char* flash_obstacle(const FlashCase& c) {
  constexpr int64_t kWidest = 256;
  if (!c.bf16) return "it needs precision=bf16";
  if (c.cut && c.drops) return "it drops other weights in every part of a sequence that parallel.cp shares";
  if (c.softcap) return "it does not support a soft cap";
  if (c.head_dim % 8 != 0) return "it needs a head width that is a multiple of 8";
  if (c.head_dim + (c.alibi ? kAlibiColumns : 0) > kWidest)
    return c.alibi ? "with ALiBi it needs a head width of at most 248"
                   : "it needs a head width of at most 256";
  if (c.alibi && c.seq > kMostAlibiPositions) return "with ALiBi it supports at most 65,536 positions";
  return nullptr;
}

/// fp32 scores in 64 MiB.
inline constexpr int64_t kMostScores = int64_t{16} << 20;

/// Queries of a prompt whose fp32 scores over so many keys, of `heads` heads of all sequences, fit into 64
/// MiB; at least one.
inline int64_t queries_at_once(int64_t heads, int64_t keys) {
  return std::max<int64_t>(1, kMostScores / std::max<int64_t>(1, heads * keys));
}

/// Key heads of one sequence whose fp32 scores, queries x keys for every query head, fit into 64 MiB; at
/// least one.
inline int64_t kv_heads_at_once(int64_t heads, int64_t kv_heads, int64_t queries, int64_t keys) {
  return std::clamp<int64_t>(kMostScores / std::max<int64_t>(1, heads / kv_heads * queries * keys), 1,
                             kv_heads);
}

}  // namespace tycho
