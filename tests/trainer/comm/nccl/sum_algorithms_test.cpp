// Which of NCCL's algorithms add, and whose word counts.
#include "trainer/comm/nccl/sum_algorithms.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tycho {
namespace {

class SumAlgorithms : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("NCCL_ALGO");
    setenv("NCCL_CONF_FILE", file_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("NCCL_ALGO"), unsetenv("NCCL_CONF_FILE");
    std::filesystem::remove(file_);
  }
  static std::string chosen() {
    keep_sums_in_fixed_order(22809);
    const char* value = std::getenv("NCCL_ALGO");
    return value == nullptr ? "" : value;
  }
  const std::string file_ = testing::TempDir() + "/tycho_nccl.conf";
};

TEST_F(SumAlgorithms, SumsStayOutOfTheSwitchAndGathersUseIt) {
  EXPECT_EQ(chosen(), "allreduce:^NVLS,NVLSTree;reducescatter:^NVLS,NVLSTree");
}

TEST_F(SumAlgorithms, OlderReleasesKnowOneListForAllCollectives) {
  EXPECT_EQ(fixed_sum_algorithms(22304), "^NVLS,NVLSTree");
}

TEST_F(SumAlgorithms, TheUsersVariableWins) {
  setenv("NCCL_ALGO", "Ring", 1);
  EXPECT_EQ(chosen(), "Ring");
}

TEST_F(SumAlgorithms, TheUsersFileWins) {
  std::ofstream(file_) << "NCCL_DEBUG=WARN\nNCCL_ALGO=Tree\n";
  EXPECT_EQ(chosen(), "");  // left to NCCL, which reads the file
}

TEST_F(SumAlgorithms, OtherVariablesInTheFileDoNotMatter) {
  std::ofstream(file_) << "#NCCL_ALGO=Tree\nNCCL_ALGORITHM=Tree\n";
  EXPECT_EQ(chosen(), fixed_sum_algorithms(22809));
}

}  // namespace
}  // namespace tycho
