// Two checkpoints side by side: values, forms, and files that make no difference.
#include "trainer/checkpoint/compare.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/checkpoint/reshard.h"

namespace tycho {
namespace {

class CompareTest : public testing::Test {
 protected:
  CheckpointInfo save(const std::vector<TensorBytes>& tensors) {
    return CheckpointStore(real_files(), dir_.path(), 0, 1).save({.step = 1}, tensors);
  }
  TensorComparison compare(const std::vector<TensorBytes>& a, const std::vector<TensorBytes>& b) {
    return compare_tensors(CheckpointReader(save(a)), CheckpointReader(save(b)));
  }

  const TempDir dir_;
};

template <class T>
TensorBytes tensor(const char* name, const char* dtype, const std::vector<T>& values,
                   std::vector<int64_t> shape = {}) {
  if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
  return {name, dtype, std::move(shape), values.data(), static_cast<int64_t>(values.size() * sizeof(T))};
}

TEST_F(CompareTest, CountsElementsAndMeasuresTheLargestDifference) {
  const std::vector<float> a = {1, 2, 3, 4}, b = {1, 2.5, 3, 3};
  const std::vector<uint16_t> half_a = {0x3c00, 0x0001}, half_b = {0x3e00, 0x0001};    // 1 and 1.5; 2^-24
  const std::vector<uint16_t> brain_a = {0x3f80, 0xc000}, brain_b = {0x3f80, 0xc040};  // 1; -2 and -3
  const TensorComparison found = compare({tensor("w", "F32", a), tensor("same", "F32", a),
                                          tensor("h", "F16", half_a), tensor("bf", "BF16", brain_a)},
                                         {tensor("w", "F32", b), tensor("same", "F32", a),
                                          tensor("h", "F16", half_b), tensor("bf", "BF16", brain_b)});
  EXPECT_EQ(found.num_equal, 1);
  ASSERT_EQ(found.differences.size(), 3u);
  const auto of = [&](const std::string& name) {
    for (const TensorDifference& one : found.differences)
      if (one.name == name) return one;
    return TensorDifference();
  };
  EXPECT_EQ(of("w").num_elements, 4);
  EXPECT_EQ(of("w").num_different, 2);
  EXPECT_EQ(of("w").max_difference, 1.0);
  EXPECT_EQ(of("h").max_difference, 0.5);
  EXPECT_EQ(of("bf").max_difference, 1.0);
}

TEST_F(CompareTest, BitsDecideAndNumbersThatAreNotFiniteHaveNoDifference) {
  const std::vector<float> zeros = {0.0F, NAN, 1.0F}, signs = {-0.0F, NAN, 1.0F}, wild = {0.0F, 7.0F, 2.0F};
  const TensorComparison sign = compare({tensor("w", "F32", zeros)}, {tensor("w", "F32", signs)});
  ASSERT_EQ(sign.differences.size(), 1u);
  EXPECT_EQ(sign.differences[0].num_different, 1);
  EXPECT_EQ(sign.differences[0].max_difference, 0.0);
  EXPECT_EQ(compare({tensor("w", "F32", zeros)}, {tensor("w", "F32", zeros)}).num_equal, 1);
  const TensorComparison nan = compare({tensor("w", "F32", zeros)}, {tensor("w", "F32", wild)});
  ASSERT_EQ(nan.differences.size(), 1u);
  EXPECT_EQ(nan.differences[0].num_different, 2);
  EXPECT_EQ(nan.differences[0].max_difference, std::nullopt);
  const std::vector<int64_t> count = {3}, other = {4};
  EXPECT_EQ(compare({tensor("n", "I64", count)}, {tensor("n", "I64", other)}).differences[0].max_difference,
            std::nullopt);
}

TEST_F(CompareTest, NamesTensorsThatOneSideLacksOrHasInAnotherForm) {
  const std::vector<float> values = {1, 2, 3, 4};
  const TensorComparison found = compare({tensor("left", "F32", values), tensor("w", "F32", values, {2, 2})},
                                         {tensor("w", "F32", values, {4}), tensor("right", "F32", values)});
  EXPECT_EQ(found.num_equal, 0);
  ASSERT_EQ(found.differences.size(), 3u);
  EXPECT_EQ(found.differences[0].a + "|" + found.differences[0].b, "F32 [4]|");
  EXPECT_EQ(found.differences[1].a + "|" + found.differences[1].b, "F32 [2, 2]|F32 [4]");
  EXPECT_EQ(found.differences[2].a + "|" + found.differences[2].b, "|F32 [4]");
}

TEST_F(CompareTest, FilesMakeNoDifference) {
  std::vector<float> values(3'000'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const CheckpointInfo one = save({tensor("w", "F32", values, {1000, 3000})});
  const CheckpointInfo many = reshard(CheckpointReader(one), real_files(), dir_.path() + "/copy", 5);
  EXPECT_EQ(compare_tensors(CheckpointReader(one), CheckpointReader(many)).num_equal, 1);
  // The last element, behind the first chunk.
  values.back() += 8;
  const CheckpointInfo other = save({tensor("w", "F32", values, {1000, 3000})});
  const TensorComparison found = compare_tensors(CheckpointReader(other), CheckpointReader(many));
  ASSERT_EQ(found.differences.size(), 1u);
  EXPECT_EQ(found.differences[0].num_different, 1);
  EXPECT_EQ(found.differences[0].max_difference, 8.0);
}

}  // namespace
}  // namespace tycho
