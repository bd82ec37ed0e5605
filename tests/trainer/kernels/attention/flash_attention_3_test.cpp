// FlashAttention-3: what it computes, where its library is looked for, and, with the library, its results.
#include "trainer/kernels/attention/flash_attention_3.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/trainer/kernels/attention/attention_check.h"

namespace tycho {
namespace {

TEST(Flash3, IsTakenWhereItCan) {
  using enum AttentionRoute;
  const auto route = [](int64_t head_dim, ScoreRules rules, at::ScalarType type = at::kBFloat16) {
    rules.flash_3 = true;
    return attention_route(at::kCUDA, type, {1, 8, 2, 1, head_dim}, rules);
  };
  const float slopes[] = {0.5f, 0.25f};
  EXPECT_EQ(route(16, {}), kFlash3);
  EXPECT_EQ(route(16, {.any_order = true}), kFlash3) << "not cuDNN";
  EXPECT_EQ(route(16, {.softcap = 2.0f, .window = 4}), kFlash3);
  EXPECT_EQ(route(16, {.alibi_H = slopes}), kFlash3);
  EXPECT_EQ(route(16, {.softcap = 2.0f, .alibi_H = slopes}), kProducts);
  EXPECT_EQ(route(16, {.dropout = {.p = 0.5}}), kFlash);
  EXPECT_EQ(route(192, {}), kFlash3);
  EXPECT_EQ(route(200, {}), kFlash) << "in a fixed order";
  EXPECT_EQ(route(192, {.alibi_H = slopes}), kFlash) << "eight columns more";
  EXPECT_EQ(route(256, {.any_order = true}), kFlash3);
  EXPECT_EQ(route(12, {}), kProducts);
  EXPECT_EQ(route(16, {}, at::kFloat), kProducts);
  EXPECT_EQ(attention_route(at::kCPU, at::kBFloat16, {1, 8, 2, 1, 16}, {.flash_3 = true}), kTiles);
}

TEST(Flash3, LiesBesideLibTorchUnlessItIsNamed) {
  namespace fs = std::filesystem;
  const char* named = std::getenv("TYCHO_FLASH_ATTN_3");
  const std::string before = named == nullptr ? "" : named;
  const fs::path packages = testing::TempDir() + "/flash_3_packages";
  fs::create_directories(packages / "flash_attn_3");
  unsetenv("TYCHO_FLASH_ATTN_3");
  EXPECT_EQ(flash_3_path(packages / "none"), "");
  EXPECT_EQ(flash_3_path(packages), "");
  for (const char* name : {"_C.abi3.so", "_C.txt", "other.so"})
    std::ofstream(packages / "flash_attn_3" / name) << "x";
  EXPECT_EQ(flash_3_path(packages), packages / "flash_attn_3" / "_C.abi3.so");
  setenv("TYCHO_FLASH_ATTN_3", "/a/b.so", 1);
  EXPECT_EQ(flash_3_path(packages), "/a/b.so");
  before.empty() ? unsetenv("TYCHO_FLASH_ATTN_3") : setenv("TYCHO_FLASH_ATTN_3", before.c_str(), 1);
  fs::remove_all(packages);
  EXPECT_TRUE(fs::exists(torch_packages() / "torch" / "lib")) << torch_packages();
}

/// Every case again with FlashAttention-3.
class Flash3OnGpu : public testing::TestWithParam<AttentionCase> {
 protected:
  void SetUp() override {
    if (!find_table("cuda")) GTEST_SKIP() << "no GPU: its attention is not compared with the oracle";
    if (!flash_3_problem().empty()) GTEST_SKIP() << flash_3_problem();
  }
};

TEST_P(Flash3OnGpu, EqualsAutogradUnderEveryRuleAndRepeatsItsBits) {
  const auto& [s, type] = GetParam();
  const EveryRule every(s);
  int64_t num_taken = 0;
  for (ScoreRules rules : every.rules()) {
    rules.flash_3 = true;
    if (attention_route(at::kCUDA, type, s, rules) != AttentionRoute::kFlash3) continue;
    expect_equals_autograd(s, rules, type, at::kCUDA, /*repeats=*/true);
    ++num_taken;
  }
  EXPECT_EQ(num_taken, type == at::kBFloat16 && s.head_dim % 8 == 0 ? 6 : 0) << "all but dropout";
}

TEST_P(Flash3OnGpu, OverSpansEqualsTheWhole) {
  expect_spans_equal_whole(GetParam().shape, GetParam().type, at::kCUDA, /*flash_3=*/true);
}

TEST_P(Flash3OnGpu, OfPartsOfTheKeysIsThatOfTheWhole) {
  expect_parts_equal_whole(GetParam().shape, GetParam().type, at::kCUDA, /*flash_3=*/true);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Flash3OnGpu, testing::ValuesIn(attention_cases()), attention_case_name);

}  // namespace
}  // namespace tycho
