// What NVML says, from a stand-in for it.
#include "trainer/metrics/gpu_use.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

TEST(GpuUse, AsksNvml) {
  const std::vector<GpuUse> gpus = gpu_use(TYCHO_FAKE_NVML);
  ASSERT_EQ(gpus.size(), 3u);
  EXPECT_DOUBLE_EQ(gpus[0].busy_share, 0.97);
  EXPECT_EQ(gpus[0].memory_used_bytes, int64_t{72} << 30);
  EXPECT_EQ(gpus[0].memory_free_bytes, int64_t{8} << 30);
  EXPECT_DOUBLE_EQ(gpus[0].power_w, 698.5);
  EXPECT_DOUBLE_EQ(gpus[0].temperature_c, 71);
}

TEST(GpuUse, WhatIsNotSaidIsMinusOne) {
  const std::vector<GpuUse> gpus = gpu_use(TYCHO_FAKE_NVML);
  ASSERT_EQ(gpus.size(), 3u);
  EXPECT_DOUBLE_EQ(gpus[1].busy_share, 0);
  EXPECT_DOUBLE_EQ(gpus[1].power_w, -1);
  EXPECT_DOUBLE_EQ(gpus[1].temperature_c, 33);
  EXPECT_DOUBLE_EQ(gpus[2].busy_share, -1);
  EXPECT_EQ(gpus[2].memory_used_bytes, -1);
}

TEST(GpuUse, ThereAreNoneWithoutTheLibrary) {
  EXPECT_TRUE(gpu_use("/nowhere/libnvidia-ml.so.1").empty());
  EXPECT_TRUE(gpu_use("libdl.so.2").empty());  // a library without these functions
}

}  // namespace
}  // namespace tycho
