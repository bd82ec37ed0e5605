// Tests of the table of peaks: names that drivers give, and what must stay unknown.
#include "trainer/metrics/device_peak.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

double bf16(const char* name) { return device_peak_flops(name, Precision::kBf16).value_or(0); }
double fp32(const char* name) { return device_peak_flops(name, Precision::kFp32).value_or(0); }

TEST(DevicePeakTest, KnowsTheNamesThatDriversGive) {
  EXPECT_EQ(bf16("NVIDIA A100-SXM4-80GB"), 312e12);
  EXPECT_EQ(bf16("NVIDIA H100 80GB HBM3"), 989.5e12);
  EXPECT_EQ(bf16("NVIDIA H100 PCIe"), 756.5e12);
  EXPECT_EQ(bf16("NVIDIA H100 NVL"), 835e12);
  EXPECT_EQ(bf16("NVIDIA H200"), 989.5e12);
  EXPECT_EQ(bf16("NVIDIA H20"), 148e12);
  EXPECT_EQ(bf16("NVIDIA B200"), 2.25e15);
  EXPECT_EQ(bf16("NVIDIA GB200"), 2.5e15);
  EXPECT_EQ(bf16("NVIDIA A10"), 125e12);
  EXPECT_EQ(bf16("NVIDIA RTX A6000"), 154.85e12);
  EXPECT_EQ(bf16("AMD Instinct MI300X"), 1300e12);
}

TEST(DevicePeakTest, TellsPrecisionsApart) {
  EXPECT_EQ(fp32("NVIDIA H200"), 67e12);
  EXPECT_EQ(fp32("NVIDIA A100-SXM4-40GB"), 19.5e12);
  EXPECT_EQ(fp32("NVIDIA H20"), 0);
}

TEST(DevicePeakTest, NeverGuesses) {
  EXPECT_EQ(bf16("AMD EPYC 7R13 Processor"), 0);
  EXPECT_EQ(bf16("NVIDIA GeForce RTX 5090"), 0);
  EXPECT_EQ(bf16("NVIDIA GH200 480GB"), 0);  // holds "H200", is another board
  EXPECT_EQ(bf16("NVIDIA H200 NVL"), 0);
  EXPECT_EQ(bf16("NVIDIA H100 80GB HBM2e"), 0);  // neither of the boards in the table
  EXPECT_EQ(bf16("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), 0);
  EXPECT_EQ(bf16("NVIDIA A100X"), 0);
  EXPECT_EQ(bf16("Tesla V100-SXM2-16GB"), 0);  // no bf16
  EXPECT_EQ(bf16(""), 0);
}

TEST(DevicePeakTest, KnowsTheMemoryOfBoardsThatHaveOneSize) {
  EXPECT_EQ(gpu_memory_bytes("NVIDIA H200"), int64_t{139} << 30);
  EXPECT_EQ(gpu_memory_bytes("NVIDIA H100 80GB HBM3"), int64_t{79} << 30);
  EXPECT_EQ(gpu_memory_bytes("NVIDIA H100 NVL"), int64_t{93} << 30);
  EXPECT_EQ(gpu_memory_bytes("NVIDIA A100-SXM4-80GB"), int64_t{79} << 30);
  EXPECT_EQ(gpu_memory_bytes("A100"), std::nullopt);  // of 40 GB, or of 80
  EXPECT_EQ(gpu_memory_bytes("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), std::nullopt);
  EXPECT_EQ(gpu_memory_bytes("NVIDIA GH200 480GB"), std::nullopt);
}

}  // namespace
}  // namespace tycho
