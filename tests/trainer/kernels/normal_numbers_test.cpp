// Normal numbers on vectors have the bits of their definition.
#include "trainer/base/random/normal_numbers.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/trainer/kernels/kernel_test.h"
#include "trainer/base/random/philox.h"

namespace tycho {
namespace {

void expect_the_bits_of_the_definition(const KernelTable& table, uint64_t key, uint64_t first, int64_t groups,
                                       double std) {
  std::vector<float> drawn(static_cast<size_t>(4 * groups) + 1, 7.0f), defined(drawn);
  table.normal_numbers(groups, key, first, std, drawn.data());
  for (int64_t g = 0; g < groups; ++g)
    four_normals(key, first + static_cast<uint64_t>(g), std, defined.data() + 4 * g);
  for (size_t i = 0; i < drawn.size(); ++i)
    ASSERT_EQ(std::memcmp(&drawn[i], &defined[i], sizeof(float)), 0)
        << drawn[i] << " is not " << defined[i] << ": number " << i << " of counter " << first
        << ", deviation " << std;
}

TEST(NormalNumbers, AreTheSameBitsOnEveryTable) {
  for (const KernelTable* table : cpu_tables()) {
    SCOPED_TRACE(table->name);
    expect_the_bits_of_the_definition(*table, stream_key(17, "model.embed_tokens.weight"), 0, 1 << 19, 0.02);
    expect_the_bits_of_the_definition(*table, 3, (uint64_t{1} << 32) - 100, 1000,
                                      1.0);  // counters of 33 bits
    for (const int64_t groups : {0, 1, 3, 4, 15, 16, 17, 33})
      expect_the_bits_of_the_definition(*table, 5, 1, groups, 0.3);
    expect_the_bits_of_the_definition(*table, 5, 9, 40, 0.0);
    expect_the_bits_of_the_definition(*table, 5, 9, 40, 1e-42);  // below the normal range of fp32
  }
}

TEST(NormalNumbers, AreNormal) {
  std::vector<double> sums(5, 0.0);
  constexpr int kCounters = 100000;
  for (uint64_t counter = 0; counter < kCounters; ++counter) {
    float four[4];
    four_normals(1, counter, 2.0, four);
    for (const float x : four) {
      double power = 1;
      for (double& sum : sums) sum += power, power *= x / 2.0;
    }
  }
  // Moments of 400,000 numbers, within five deviations of each.
  const double wanted[] = {1, 0, 1, 0, 3}, deviation[] = {0, 1, 1.414, 3.873, 9.798};
  for (size_t k = 0; k < sums.size(); ++k)
    EXPECT_NEAR(sums[k] / (4.0 * kCounters), wanted[k], 5 * deviation[k] / std::sqrt(4.0 * kCounters)) << k;
}

}  // namespace
}  // namespace tycho
