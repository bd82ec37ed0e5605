// The LibTorch that is loaded, and those that will not do.
#include "trainer/device/libtorch_version.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

TEST(LibTorchVersion, TheLoadedOneWillDo) { EXPECT_EQ(libtorch_problem(libtorch_version()), ""); }

TEST(LibTorchVersion, ReleasesFrom211OnWillDo) {
  for (const char* version : {"2.11.0", "2.12.1", "3.0.0"})
    EXPECT_EQ(libtorch_problem(version), "") << version;
}

TEST(LibTorchVersion, OlderOnesAreNamedWithWhatToDo) {
  for (const char* version : {"2.10.0", "2.9.1", "1.13.0", "2.8 or older"}) {
    const std::string problem = libtorch_problem(version);
    EXPECT_EQ(problem.rfind(std::string("expected LibTorch 2.11 or newer, got ") + version + ":", 0), 0U)
        << problem;
    EXPECT_NE(problem.find("scripts/setup"), std::string::npos);
  }
}

}  // namespace
}  // namespace tycho
