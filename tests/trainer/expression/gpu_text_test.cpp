// The text of programs for a GPU: AdamW's whole, a line for each operation, and how each form of memory is
// read and written. run_program_test runs such texts.
//   TYCHO_UPDATE_GOLDENS=1 build/cpu/bin/expression_test --gtest_filter='GpuText*'
#include "trainer/expression/gpu/gpu_text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/trainer/expression/adamw_expression.h"
#include "trainer/base/file_ops.h"
#include "trainer/expression/program.h"

namespace tycho {
namespace {

using Form = GpuArray::Form;

/// Returns the text of a program after the part that all have.
std::string own_text(const Expression& expression, Form weights) {
  const Program program(expression);
  const std::vector<float> constants(64);
  TileProgram tiles = program.tiles(constants);
  tiles.num_constants = 0;
  for (int32_t i = 0; i < tiles.num_instructions; ++i)
    for (const uint16_t place : {tiles.instructions[i].a, tiles.instructions[i].b, tiles.instructions[i].c})
      if (place != kRegisters)
        tiles.num_constants =
            std::max(tiles.num_constants, place + 1 - tiles.num_arrays - tiles.num_temporaries);
  std::vector<GpuArray> arrays;
  for (const ProgramArray& array : program.arrays())
    arrays.push_back({array.name == "p" ? weights : Form::kFp32, array.one, array.read, array.written});
  const std::string text = gpu_text(tiles, arrays);
  return text.substr(text.find("struct Program {"));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(GpuText, OfAdamWIsAKernelThatReadsAndWritesEachElementOnce) {
  const std::string text = own_text(adamw_expression(), Form::kMixed);
  const std::string golden =
      std::string(std::getenv("TYCHO_SOURCE_DIR")) + "/tests/golden/expression/adamw_kernel.txt";
  if (std::getenv("TYCHO_UPDATE_GOLDENS") != nullptr) std::ofstream(golden) << text;
  EXPECT_EQ(text, read_file(golden));
}

TEST(GpuText, RoundsWeightsAsTheirFormWants) {
  const std::string fp32 = own_text(adamw_expression(), Form::kFp32);
  EXPECT_TRUE(contains(fp32, "read<float>(arrays[0], row, at, a0);"));
  EXPECT_TRUE(contains(fp32, "write<float>(a0, arrays[0], row, at);"));
  const std::string bf16 = own_text(adamw_expression(), Form::kBf16);
  EXPECT_TRUE(contains(bf16, "read<Bf16>(arrays[0], row, at, a0);"));
  EXPECT_TRUE(contains(bf16, "write<Bf16>(a0, arrays[0], row, at);"));
  const std::string stochastic = own_text(adamw_expression(), Form::kStochasticBf16);
  EXPECT_TRUE(contains(stochastic, "write_stochastic(a0, arrays[0], run, at);"));
}

TEST(GpuText, HasOneLineForEachOperation) {
  const auto line_of = [](const std::string& nodes) {
    return own_text(
        expression_of("{'inputs':[{'name':'x'},{'name':'y'},{'name':'z'},{'name':'k','scalar':true}],"
                      "'nodes':[['input',0],['input',1],['input',2],['input',3]," +
                      nodes + "],'outputs':[{'name':'out','node':4}]}"),
        Form::kFp32);
  };
  EXPECT_TRUE(contains(line_of("['fma',0,1,2]"), "kept = __fmaf_rn(a0[k], a1[k], a2[k]);"));
  EXPECT_TRUE(contains(line_of("['pow',0,1]"), "kept = powf(a0[k], a1[k]);"));
  EXPECT_TRUE(contains(line_of("['pow',0,3]"), "kept = power_by(a0[k], c0);"));
  EXPECT_TRUE(contains(line_of("['rsqrt',0]"), "kept = 1.0f / sqrtf(a0[k]);"));
  EXPECT_TRUE(contains(line_of("['neg',0]"), "kept = -a0[k];"));
  EXPECT_TRUE(contains(line_of("['clamp',0,1,2]"), "smaller_of(larger_of(a0[k], a1[k]), a2[k]);"));
}

}  // namespace
}  // namespace tycho
