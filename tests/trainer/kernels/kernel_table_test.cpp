// Tables are complete, chosen once, and missing ones are named.
#include "trainer/kernels/twins/kernel_table.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/trainer/kernels/kernel_test.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

class KernelTableTest : public testing::TestWithParam<std::string> {};

TEST_P(KernelTableTest, HasEveryKernel) {
  const KernelTable* table = find_table(GetParam());
  if (!table) GTEST_SKIP() << "this machine cannot run the kernels of " << GetParam();
  EXPECT_EQ(missing_kernels(*table), std::vector<std::string>{});
  EXPECT_NE(std::string(table->name).find(GetParam()), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Tables, KernelTableTest, testing::ValuesIn(kWholeTables),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Bf16Tables, KernelTableTest, testing::ValuesIn(kBf16Tables),
                         [](const auto& info) { return info.param; });

/// So it is enough to test these tables' products, and everything else once, on the table that they extend.
TEST(KernelTables, ForBf16DifferFromTheirBaseInProductsAlone) {
  for (const std::string& name : kBf16Tables) {
    const KernelTable* base = find_table(name.ends_with("_emulated") ? "avx512_emulated" : "avx512");
    const KernelTable* table = find_table(name);
    if (!table) continue;
#define TYCHO_EXPECT_SAME(entry) EXPECT_EQ(table->entry, base->entry) << name << " " << #entry;
    TYCHO_KERNELS(TYCHO_EXPECT_SAME)
#undef TYCHO_EXPECT_SAME
    EXPECT_EQ(table->attention, base->attention);
    EXPECT_EQ(table->attention_backward, base->attention_backward);
    EXPECT_NE(table->matmul, base->matmul);
  }
}

TEST(KernelTables, ServeTheBestInstructionSetOfThisCpu) {
  if (const char* wanted = std::getenv("TYCHO_CPU"); wanted && *wanted) GTEST_SKIP() << "TYCHO_CPU is set";
  std::string best;
  for (const char* name : kInstructionSets)
    if (find_table(name)) best = name;
  EXPECT_EQ(cpu_kernels().name, "cpu " + best);
}

TEST(KernelTables, NameMissingKernels) {
  KernelTable table = cpu_kernels();
  table.rope = nullptr;
  table.cast = nullptr;
  EXPECT_EQ(missing_kernels(table), (std::vector<std::string>{"rope", "cast"}));
  EXPECT_EQ(
      error_of([&] { set_cuda_kernels(&table); }),
      "[kernels] the CUDA plug-in lacks rope and 1 other kernels: rebuild libtycho_cuda.so with this tycho");
}

TEST(KernelTables, AreHandedOverByTheCudaPlugInWithoutAGpu) {
#ifdef TYCHO_CUDA_PLUGIN
  const CudaTables tables = open_cuda_plugin();
  ASSERT_NE(tables.kernels, nullptr);
  EXPECT_EQ(missing_kernels(*tables.kernels), std::vector<std::string>{});
  EXPECT_STREQ(tables.kernels->name, "cuda");
  EXPECT_NE(tables.nccl, nullptr);
#else
  GTEST_SKIP() << "this build has no CUDA support";
#endif
}

#ifdef TYCHO_CUDA_PLUGIN
/// What a "fat binary" holds: "sm_80" for machine code, "compute_90" for PTX.
std::set<std::string> code_in(const std::string& bytes) {
  // A header (magic, version, its size, the size of what follows), then entries with headers of their own.
  const auto number = [&](size_t at, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i)
      value |= uint64_t{static_cast<unsigned char>(bytes.at(at + i))} << 8 * i;
    return value;
  };
  const std::string magic("\x50\xed\x55\xba\x01\x00", 6);
  std::set<std::string> found;
  for (size_t at = bytes.find(magic); at != std::string::npos; at = bytes.find(magic, at + 1)) {
    size_t entry = at + number(at + 6, 2);
    const size_t end = entry + number(at + 8, 8);
    while (entry < end) {
      const bool is_ptx = number(entry, 2) == 1;
      found.insert((is_ptx ? "compute_" : "sm_") + std::to_string(number(entry + 28, 4)));
      entry += number(entry + 4, 4) + number(entry + 8, 8);
    }
  }
  return found;
}

TEST(CudaPlugin, HoldsMachineCodeSinceAmpereAndPtxForWhatComesAfterHopper) {
  std::ifstream file(TYCHO_CUDA_PLUGIN, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(code_in(bytes), (std::set<std::string>{"sm_80", "sm_90", "compute_90"}));
}
#endif

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
      "TYCHO_CPU expected one of generic, avx2, avx512, avx512_bf16, amx_bf16 that this CPU can run, got "
      "'sse9'");
}

TEST(KernelTables, SayThatTheCudaPluginIsNotLoaded) {
  if (find_table("cuda")) GTEST_SKIP() << "this build has loaded the plug-in";
  EXPECT_NE(error_of([] { cuda_kernels(); }).find("[kernels] no CUDA plug-in"), std::string::npos);
}

}  // namespace
}  // namespace tycho
