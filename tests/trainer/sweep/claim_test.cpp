// Claims: one winner, and who counts as gone.
#include "trainer/sweep/claim.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

class ClaimTest : public testing::Test {
 protected:
  std::unique_ptr<Claim> take(int64_t number = 1) {
    return Claim::take(real_files(), dir_.path(), "t", number);
  }
  TempDir dir_;
};

TEST_F(ClaimTest, OfManyProcessesOneGetsEachNumberAndNobodyEverAgain) {
  int wins = 0;
  for (int number = 1; number <= 10; ++number) {
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        const auto claim = Claim::take(real_files(), dir_.path(), "t", number);
        _exit(claim ? 1 : 0);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      wins += WEXITSTATUS(status);
    }
    EXPECT_EQ(take(number), nullptr);
  }
  EXPECT_EQ(wins, 10);
  for (const auto& entry : fs::directory_iterator(dir_ / "claims"))
    EXPECT_EQ(entry.path().filename().string().find('-'), std::string::npos)
        << "a draft is left: " << entry.path();
}

TEST_F(ClaimTest, AnOwnerThatLeftOrDiedIsLostAtOnceAndALivingOneIsNot) {
  ClaimWatch watch(dir_.path());
  auto mine = take(1);
  EXPECT_FALSE(watch.is_lost("t", 1, 1000));
  mine.reset();
  EXPECT_TRUE(watch.is_lost("t", 1, 1000));
  const pid_t child = fork();
  if (child == 0) {
    const auto claim = take(2).release();
    _exit(claim ? 1 : 0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(watch.is_lost("t", 2, 1000));
}

TEST_F(ClaimTest, OneLookTellsWhoIsGone) {
  auto mine = take(1);
  EXPECT_FALSE(is_gone(dir_.path(), "t", 1, 10));
  EXPECT_FALSE(is_gone(dir_.path(), "t", 2, 10)) << "a claim that is not visible yet";
  const std::string path = claim_path(dir_.path(), "t", 1);
  const auto age = [&](int seconds) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
  };
  age(500);
  EXPECT_FALSE(is_gone(dir_.path(), "t", 1, 10)) << "clocks of nodes may differ";
  age(700);
  EXPECT_TRUE(is_gone(dir_.path(), "t", 1, 10));
  EXPECT_FALSE(is_gone(dir_.path(), "t", 1, 30)) << "it beats twice a minute";
  mine.reset();
  EXPECT_TRUE(is_gone(dir_.path(), "t", 1, 30));
}

TEST_F(ClaimTest, AnOwnerElsewhereIsLostAfterThreeMissedBeatsOnOurClock) {
  auto mine = take(1);
  const std::string path = claim_path(dir_.path(), "t", 1);
  std::string text = read_file(path);
  const std::string boot = "\"boot_id\":\"";
  text.replace(text.find(boot) + boot.size(), 4, "0000");  // another machine
  std::ofstream(path, std::ios::trunc) << text;
  ClaimWatch watch(dir_.path());
  constexpr double kBeat = 0.02;
  for (int i = 0; i < 10; ++i) {
    std::ofstream(path, std::ios::app) << ".";
    EXPECT_FALSE(watch.is_lost("t", 1, kBeat));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  EXPECT_TRUE(watch.is_lost("t", 1, kBeat));
}

}  // namespace
}  // namespace tycho
