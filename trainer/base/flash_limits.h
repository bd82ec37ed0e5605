// What flash attention on a GPU supports, for plans, for choosing kernels and for warnings.
#pragma once
#include <cstdint>

namespace tycho {

inline constexpr int64_t kAlibiColumns =
    8;  // that ALiBi adds to a head: what flash attention's widths are a multiple of
inline constexpr int64_t kMostAlibiPositions = 65536;

struct FlashCase {
  bool bf16 = false, softcap = false, alibi = false;
  int64_t head_dim = 0, seq = 0;
  bool cut = false;  // queries are some of a sequence's tokens
};

/// Why flash attention cannot compute it and plain products do, which are slower; nullptr when it can.
inline const char* flash_obstacle(const FlashCase& c) {
  constexpr int64_t kWidest = 256;
  if (!c.bf16) return "it needs precision=bf16";
  if (c.cut) return "it takes whole sequences, and parallel.cp shares them";
  if (c.softcap) return "it does not support a soft cap";
  if (c.head_dim % 8 != 0) return "it needs a head width that is a multiple of 8";
  if (c.head_dim + (c.alibi ? kAlibiColumns : 0) > kWidest)
    return c.alibi ? "with ALiBi it needs a head width of at most 248"
                   : "it needs a head width of at most 256";
  if (c.alibi && c.seq > kMostAlibiPositions) return "with ALiBi it supports at most 65,536 positions";
  return nullptr;
}

}  // namespace tycho
