// Shuffles as randperm_cpu of PyTorch 2.15 does: each place is swapped with one of those that follow it or
// with itself, drawn by the remainder of 32 bits of mt19937, whose seed is the lower half of the given one.
#include "trainer/data/order/torch_permutation.h"

#include <limits>
#include <random>
#include <utility>

#include "trainer/base/error.h"

namespace tycho {

void torch_permutation(std::span<uint32_t> ids, uint64_t seed) {
  constexpr size_t kMost = std::numeric_limits<uint32_t>::max() / 20;
  if (ids.size() >= kMost)
    fail(ExitCode::kUnusable, "[order] expected fewer than {} rows, got {}: divide them among several files",
         kMost, ids.size());
  std::mt19937 rng(static_cast<uint32_t>(seed));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<uint32_t>(i);
  for (size_t i = 0; i + 1 < ids.size(); ++i) std::swap(ids[i], ids[i + rng() % (ids.size() - i)]);
}

}  // namespace tycho
