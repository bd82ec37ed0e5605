// Where the bits of a canonical run would depend on its ranks.
#include "trainer/run/canonical_route.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/trainer/aten.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

std::string refusal(int64_t threads, const at::Device& device,
                    GradientOrder order = GradientOrder::kCanonical) {
  TrainConfig config;
  config.parallel.reduce = order;
  config.threads = threads;
  try {
    require_canonical_route(config, device);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTopology);
    return error.what();
  }
  return "";
}

TEST(CanonicalRoute, IsNotThatOfAGpu) {
  EXPECT_EQ(
      refusal(1, at::kCUDA),
      "[parallel] reduce = \"canonical\" works on CPUs, and this run is on a GPU, where NCCL chooses the "
      "order of sums. Set parallel.reduce = \"ranks\", or device = \"cpu\"");
  EXPECT_EQ(refusal(1, at::kCUDA, GradientOrder::kRanks), "");
}

/// In a process of its own, since a process chooses once.
void expect_refused(const char* who_multiplies, int64_t threads, bool refused) {
  EXPECT_EXIT(
      {
        setenv("TYCHO_GEMM", who_multiplies, 1);
        const std::string text = refusal(threads, at::kCPU);
        std::exit((text.find("Set threads = 1") != std::string::npos) == refused ? 0 : 1);
      },
      testing::ExitedWithCode(0), "")
      << who_multiplies << " " << threads;
}

TEST(CanonicalRouteDeathTest, NeedsAGivenNumberOfThreadsWhereLibTorchMultiplies) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  expect_refused("own", 0, false);
  expect_refused("aten", 0, true);
  expect_refused("aten", 2, false);
}

}  // namespace
}  // namespace tycho
