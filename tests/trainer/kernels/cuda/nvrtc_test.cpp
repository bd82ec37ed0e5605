// NVRTC found, missing and asked: the real one compiles programs for every architecture, where this machine
// has it.
#include "trainer/kernels/cuda/nvrtc.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "tests/trainer/expression/adamw_expression.h"
#include "trainer/base/error.h"
#include "trainer/expression/gpu/gpu_text.h"
#include "trainer/expression/program.h"

namespace tycho::cuda {

namespace {

using Form = GpuArray::Form;

/// The library beside the CUDA runtime that this build found.
const Nvrtc& real_nvrtc() {
  static const Nvrtc nvrtc({TYCHO_CUDA_FOLDER "/libnvrtc.so.13"});
  return nvrtc;
}

std::string text_of(const Expression& expression, Form weights) {
  const Program program(expression);
  const std::vector<float> constants =
      program.constants(program.scalars(std::vector<double>(program.scalar_inputs().size(), 0.5)));
  std::vector<GpuArray> arrays;
  for (const ProgramArray& array : program.arrays())
    arrays.push_back({array.name == "p" ? weights : Form::kFp32, array.one, array.read, array.written});
  return gpu_text(program.tiles(constants), arrays);
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Nvrtc, ThatIsMissingSaysWhereItWasLookedFor) {
  const Nvrtc none({"libtycho-no-nvrtc.so.13", "/nowhere/libnvrtc.so.13"});
  EXPECT_EQ(
      none.state().problem,
      "expected NVRTC (libnvrtc.so.13), which compiles the mathematics of recipes for the GPU; it is not "
      "at libtycho-no-nvrtc.so.13, /nowhere/libnvrtc.so.13. Run scripts/setup --cuda, install the package "
      "nvidia-cuda-nvrtc or a CUDA 13 toolkit, or name its folder in LD_LIBRARY_PATH");
  try {
    none.target(90);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTopology);
    EXPECT_EQ(std::string(error.what()), "[run_program] " + none.state().problem);
  }
}

TEST(Nvrtc, MayBeAnotherLibraryOfTheName) {
  EXPECT_EQ(Nvrtc({"libc.so.6"}).state().problem,
            "expected NVRTC 13 in libnvrtc.so.13, got a library without nvrtcVersion");
}

TEST(Nvrtc, IsLookedForBesideTheRuntimeAndInToolkits) {
  unsetenv("CUDA_PATH");
  setenv("CUDA_HOME", "/opt/cuda", 1);
  EXPECT_EQ(
      nvrtc_paths("/wheels/lib"),
      (std::vector<std::string>{"libnvrtc.so.13", "/wheels/lib/libnvrtc.so.13",
                                "/opt/cuda/lib64/libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13"}));
  unsetenv("CUDA_HOME");
}

TEST(Nvrtc, CompilesForTheGpuOrTheNewestThatItKnows) {
  const std::vector<int> known = {75, 80, 86, 90, 120};
  EXPECT_EQ(choose_target(86, known).arch, 86);
  EXPECT_TRUE(choose_target(86, known).own);
  EXPECT_EQ(choose_target(87, known).arch, 86);
  EXPECT_FALSE(choose_target(87, known).own);
  EXPECT_EQ(choose_target(130, known).arch, 120);
  try {
    choose_target(70, known);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "[run_program] expected a GPU that NVRTC compiles for, got compute capability 7.0; this NVRTC knows "
        "7.5 and newer");
  }
}

TEST(RealNvrtc, CompilesEveryFormOfWeights) {
  if (!real_nvrtc().state().problem.empty()) GTEST_SKIP() << real_nvrtc().state().problem;
  EXPECT_GE(real_nvrtc().state().version, 13000);
  for (const auto& [form, capability] :
       {std::pair{Form::kFp32, 80}, {Form::kBf16, 90}, {Form::kMixed, 86}, {Form::kStochasticBf16, 90}}) {
    const std::string text = text_of(adamw_expression(), form);
    EXPECT_EQ(real_nvrtc().compile(text, real_nvrtc().target(capability)).substr(1, 3), "ELF");
  }
}

TEST(RealNvrtc, ContractsNothingAndMovesFourElementsAtATime) {
  if (!real_nvrtc().state().problem.empty()) GTEST_SKIP() << real_nvrtc().state().problem;
  const std::string ptx =
      real_nvrtc().compile(text_of(adamw_expression(), Form::kFp32), {.arch = 90, .own = false});
  EXPECT_EQ(count(ptx, "fma."), 0u);
  EXPECT_EQ(count(ptx, "ld.global.v4.f32"), 4u) << "p, g, m and v";
  EXPECT_EQ(count(ptx, "st.global.v4.f32"), 3u) << "p, m and v";
  EXPECT_EQ(count(ptx, ".local"), 0u);
}

TEST(RealNvrtc, CompilesEveryOperation) {
  if (!real_nvrtc().state().problem.empty()) GTEST_SKIP() << real_nvrtc().state().problem;
  Expression e = expression_of(
      "{'inputs':[{'name':'x'},{'name':'y'},{'name':'z'}],'nodes':[['input',0],['input',1],['input',2],"
      "['lt',0,1],['ge',1,2]],'outputs':[{'name':'out','node':0}]}");
  const auto add = [&](Op op, std::array<int32_t, 3> arguments) {
    for (size_t i = static_cast<size_t>(operation(op).arguments); i < 3; ++i) arguments[i] = -1;
    e.nodes.push_back({.op = op, .arguments = arguments});
    return static_cast<int32_t>(e.nodes.size()) - 1;
  };
  for (const Op op : random_operations(true)) {
    const OpKind kind = operation(op).kind;
    const bool of_booleans = kind == OpKind::kLogic || kind == OpKind::kChoice;
    int32_t value =
        add(op, of_booleans ? std::array{3, kind == OpKind::kLogic ? 4 : 1, 2} : std::array{0, 1, 2});
    if (kind == OpKind::kLogic || kind == OpKind::kComparison) value = add(Op::kWhere, {value, 0, 2});
    e.outputs[0].node = add(Op::kAdd, {e.outputs[0].node, value, -1});
  }
  EXPECT_EQ(real_nvrtc().compile(text_of(e, Form::kFp32), real_nvrtc().target(90)).substr(1, 3), "ELF");
}

TEST(RealNvrtc, SaysWhatItDoesNotUnderstand) {
  if (!real_nvrtc().state().problem.empty()) GTEST_SKIP() << real_nvrtc().state().problem;
  try {
    real_nvrtc().compile("no program", {.arch = 90});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("does not compile this recipe's program"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("tycho_program.cu(1): error"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tycho::cuda
