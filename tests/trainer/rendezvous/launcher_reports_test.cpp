// What a rank tells its launcher.
#include "trainer/rendezvous/launcher_reports.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "trainer/rendezvous/progress.h"

namespace tycho {
namespace {

/// A pipe that the variable names, as the launcher leaves it.
class LauncherReportsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe(ends_), 0);
    setenv(kReportVariable, std::to_string(ends_[1]).c_str(), 1);
  }
  void TearDown() override {
    unsetenv(kReportVariable);
    for (const int end : ends_) close(end);
  }
  std::string read_line() const {
    std::string line;
    for (char c = 0; read(ends_[0], &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  int ends_[2] = {-1, -1};
};

TEST_F(LauncherReportsTest, TellsStepAndPhaseEachSecond) {
  process_progress().set_step(41);
  const InPhase phase("saving a checkpoint");
  const LauncherReports reports;
  EXPECT_EQ(read_line(), "41 saving a checkpoint");
  process_progress().set_step(42);
  EXPECT_EQ(read_line(), "42 saving a checkpoint");
  EXPECT_EQ(fcntl(ends_[1], F_GETFD), FD_CLOEXEC) << "programs that a run starts must not hold it open";
}

TEST_F(LauncherReportsTest, ALauncherThatDoesNotReadHoldsNobodyUp) {
  fcntl(ends_[1], F_SETFL, O_NONBLOCK);
  const std::string block(4096, 'x');
  while (write(ends_[1], block.data(), block.size()) > 0) {
  }
  const LauncherReports reports;  // and its end, which waits for the thread
}

TEST_F(LauncherReportsTest, WithoutALauncherNothingIsWritten) {
  for (const char* value : {"", "1", "stderr", "99999"}) {
    setenv(kReportVariable, value, 1);
    const LauncherReports reports;
  }
  unsetenv(kReportVariable);
  { const LauncherReports reports; }
  fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  char c = 0;
  EXPECT_EQ(read(ends_[0], &c, 1), -1);
}

}  // namespace
}  // namespace tycho
