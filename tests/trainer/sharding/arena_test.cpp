// Memory that arenas take of the system.
#include "trainer/sharding/arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <vector>

#include "tests/trainer/aten.h"

namespace tycho {
namespace {

/// Returns the resident bytes of this process.
int64_t resident_bytes() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * 4096;
}

// Sixty buffers of a model, each a little larger than one huge page, once took two of them each.
TEST(ArenaTest, AShortEndTakesNoHugePage) {
  constexpr int64_t kMiB = int64_t{1} << 20, kBytes = 2 * kMiB + 4096, kArenas = 60;
  const int64_t before = resident_bytes();
  std::vector<Tensor> arenas;
  for (int64_t i = 0; i < kArenas; ++i) {
    arenas.push_back(make_arena(kBytes, at::kCPU));
    std::memset(arenas.back().mutable_data_ptr(), 1, kBytes);
  }
  EXPECT_LT(resident_bytes() - before, kArenas * 3 * kMiB);
  EXPECT_EQ(arenas.back()[kBytes - 1].item<uint8_t>(), 1);
}

TEST(ArenaTest, CountsItsBytesWhileItLives) {
  const int64_t before = arena_bytes();
  {
    const Tensor arena = make_arena(12345, at::kCPU);
    EXPECT_EQ(arena_bytes(), before + 12345);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.const_data_ptr()) % 4096, 0u);
  }
  EXPECT_EQ(arena_bytes(), before);
}

}  // namespace
}  // namespace tycho
