// How many heads' scores attention by plain products holds at once: what plans count and kernels do.
#pragma once
#include <algorithm>
#include <cstdint>

namespace tycho {

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
