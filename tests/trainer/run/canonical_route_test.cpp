// Where the bits of a canonical run would depend on its ranks.
#include "trainer/run/canonical_route.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/trainer/aten.h"
#include "tests/trainer/comm/rank_threads.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

std::string refusal(int64_t threads) {
  TrainConfig config;
  config.parallel.reduce = GradientOrder::kCanonical;
  config.threads = threads;
  try {
    require_given_threads(config, at::kCPU);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTopology);
    return error.what();
  }
  return "";
}

/// Ranks in threads of one process, of which rank 1 computes in another precision than the others: its route
/// names another product.
std::vector<Ended> start_with_two_precisions(GradientOrder order) {
  return on_ranks(3, [&](Communicator& world) {
    TrainConfig config;
    config.parallel.reduce = order;
    config.precision = world.rank() == 1 ? Precision::kBf16 : Precision::kFp32;
    require_one_route(config, at::kCPU, world);
  });
}

TEST(CanonicalRoute, IsOneForAllRanks) {
  const std::vector<Ended> refused = start_with_two_precisions(GradientOrder::kCanonical);
  for (const Ended& rank : refused) {
    EXPECT_EQ(rank.code, ExitCode::kTopology);
    EXPECT_EQ(rank.what.rfind("[parallel] reduce = \"canonical\" needs ranks that compute alike, but rank 0 "
                              "computes with {",
                              0),
              0U)
        << rank.what;
    EXPECT_NE(rank.what.find("}, rank 1 with {"), std::string::npos) << rank.what;
  }
  for (const Ended& rank : start_with_two_precisions(GradientOrder::kRanks)) EXPECT_EQ(rank.what, "");
}

/// In a process of its own, since a process chooses once.
void expect_refused(const char* who_multiplies, int64_t threads, bool refused) {
  EXPECT_EXIT(
      {
        setenv("TYCHO_GEMM", who_multiplies, 1);
        const std::string text = refusal(threads);
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
