// Copies between the host and a device, here the host itself; the stand-in for a GPU (tests/standin_gpu)
// counts the others.
#include "trainer/kernels/host_copies.h"

#include <gtest/gtest.h>

#include "tests/trainer/aten.h"
#include "tests/trainer/kernels/kernel_test.h"
#include "trainer/kernels/cross_entropy.h"

namespace tycho {
namespace {

TEST(HostCopies, OnACpuNumbersAreAViewAndNoneAreNone) {
  const std::vector<int32_t> values = {3, 1, 2};
  const Tensor numbers = numbers_on(at::kCPU, values);
  EXPECT_EQ(numbers.const_data_ptr<int32_t>(), values.data());
  EXPECT_EQ(numbers.sizes(), at::IntArrayRef({3}));
  EXPECT_FALSE(numbers_on(at::kCPU, std::vector<int32_t>()).defined());
}

TEST(HostCopies, LowHalvesBecomeTheNumbersThatTheyAreOf) {
  std::vector<uint16_t> low_halves;
  std::vector<int32_t> wanted;
  for (int32_t number = kIgnoredTarget; number < kIgnoredTarget + 65536; ++number) {
    wanted.push_back(number);
    low_halves.push_back(static_cast<uint16_t>(number));
  }
  const Tensor numbers = numbers_on(at::kCPU, low_halves);
  low_halves.clear();
  EXPECT_TRUE(at::equal(numbers, numbers_on(at::kCPU, wanted)));
  EXPECT_FALSE(numbers_on(at::kCPU, std::vector<uint16_t>()).defined());
}

TEST(HostCopies, ACopyConvertsAndRefusesOtherShapes) {
  const Tensor from = at::randn({3, 5}).to(at::kBFloat16);
  Tensor to = at::empty({3, 5});
  copy_to_host(from, to);
  EXPECT_TRUE(at::equal(to, from.to(at::kFloat)));
  Tensor other = at::empty({5, 3});
  EXPECT_NE(error_of([&] {
              copy_to_host(from, other);
            }).find("[copy_to_host] expected contiguous tensors of one shape"),
            std::string::npos);
}

}  // namespace
}  // namespace tycho
