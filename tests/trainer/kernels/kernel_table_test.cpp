// Tables are complete, chosen once, and missing ones are named.
#include "trainer/kernels/kernel_table.h"

#include <cstdlib>

#include "tests/trainer/kernels/kernel_test.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

class KernelTableTest : public testing::TestWithParam<const char*> {};

TEST_P(KernelTableTest, LacksNothing) {
  const KernelTable* table = find_table(GetParam());
  if (!table) GTEST_SKIP() << "this machine cannot run the kernels of " << GetParam();
  EXPECT_EQ(missing_kernels(*table), std::vector<std::string>{});
  EXPECT_NE(std::string(table->name).find(GetParam()), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Tables, KernelTableTest, testing::Values("generic", "avx2", "avx512", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

TEST(KernelTables, NameWhatATableLacks) {
  KernelTable table = cpu_kernels();
  table.rope = nullptr;
  table.cast = nullptr;
  EXPECT_EQ(missing_kernels(table), (std::vector<std::string>{"rope", "cast"}));
  EXPECT_EQ(
      error_of([&] { set_cuda_kernels(&table); }),
      "[kernels] the CUDA plug-in lacks rope and 1 other kernels: rebuild libtycho_cuda.so with this tycho");
}

TEST(KernelTables, HaveNoTableOfAnUnknownInstructionSet) { EXPECT_EQ(cpu_kernels_for("sse9"), nullptr); }

TEST(KernelTablesDeathTest, ObeyTheEnvironment) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("TYCHO_CPU", "generic", 1);
        std::exit(std::string(cpu_kernels().name) == "cpu generic" ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        setenv("TYCHO_CPU", "sse9", 1);
        try {
          cpu_kernels();
        } catch (const Error& error) {
          std::fputs(error.what(), stderr);
          std::exit(static_cast<int>(error.code()));
        }
      },
      testing::ExitedWithCode(2),
      "TYCHO_CPU wanted generic, avx2 or avx512 that this CPU can run, got 'sse9'");
}

TEST(KernelTables, SayThatTheCudaPluginIsNotLoaded) {
  if (find_table("cuda")) GTEST_SKIP() << "this build has loaded the plug-in";
  EXPECT_NE(error_of([] { cuda_kernels(); }).find("[kernels] no CUDA plug-in"), std::string::npos);
}

}  // namespace
}  // namespace tycho
