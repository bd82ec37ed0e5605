// What flash attention on a GPU can compute: plans count by it, kernels choose by it, a run tells by it.
#pragma once
#include <cstdint>

namespace tycho {

inline constexpr int64_t kAlibiColumns =
    8;  // that ALiBi adds to a head: what flash attention's widths are a multiple of
inline constexpr int64_t kMostAlibiPositions = 65536;

struct FlashCase {
  bool bf16 = false, softcap = false, alibi = false;
  int64_t head_dim = 0, seq = 0;
};

/// Why flash attention cannot compute it and plain products do, which are slower; nullptr when it can.
inline const char* flash_obstacle(const FlashCase& c) {
  constexpr int64_t kWidest = 256;
  if (!c.bf16) return "it wants precision=bf16";
  if (c.softcap) return "it has no soft cap";
  if (c.head_dim % 8 != 0) return "it wants heads whose width is a multiple of 8";
  if (c.head_dim + (c.alibi ? kAlibiColumns : 0) > kWidest)
    return c.alibi ? "with ALiBi it wants heads of at most 248" : "it wants heads of at most 256";
  if (c.alibi && c.seq > kMostAlibiPositions) return "with ALiBi it wants at most 65,536 positions";
  return nullptr;
}

}  // namespace tycho
