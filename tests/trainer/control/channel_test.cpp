// Lines of operators into a run, and back.
#include "trainer/control/channel.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/lock/owner.h"

namespace tycho {
namespace {

class ChannelTest : public testing::Test {
 protected:
  ChannelTest() { std::ofstream(dir_ / "recipe.json") << "{}"; }
  std::string run_dir() const { return dir_ / ""; }
  TempDir dir_;
};

TEST_F(ChannelTest, ALineIsAnsweredAndNamesItsUser) {
  ControlChannel channel(run_dir());
  auto answer =
      std::async(std::launch::async, [&] { return ControlClient(run_dir()).ask("ctx.loss", true); });
  std::vector<OperatorLine> lines;
  while (lines.empty()) lines = channel.poll(1000);
  EXPECT_EQ(lines[0].code, "ctx.loss");
  EXPECT_TRUE(lines[0].may_command);
  EXPECT_TRUE(lines[0].by.ends_with("(attach)"));
  channel.answer(lines[0], true, "2.5\nand more");
  const ControlAnswer got = answer.get();
  EXPECT_TRUE(got.ok);
  EXPECT_EQ(got.text, "2.5\nand more");
}

TEST_F(ChannelTest, TheSocketIsPrivateToItsOwnerAndRemovedWithTheRun) {
  {
    const ControlChannel channel(run_dir());
    struct stat info = {};
    ASSERT_EQ(stat((dir_ / "control.sock").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
  EXPECT_FALSE(std::filesystem::exists(dir_ / "control.sock"));
  EXPECT_THROW(ControlClient{run_dir()}, Error);
}

TEST_F(ChannelTest, TheSocketOfASuccessorStays) {
  auto stopped = std::make_unique<ControlChannel>(run_dir());
  const ControlChannel successor(run_dir());
  stopped.reset();
  EXPECT_TRUE(std::filesystem::exists(run_dir() + "/control.sock"));
}

TEST_F(ChannelTest, AClientDoesNotWaitForALockThatIsAPipe) {
  ASSERT_EQ(mkfifo((run_dir() + "/LOCK").c_str(), 0600), 0);
  EXPECT_THROW(ControlClient{run_dir()}, Error);
}

TEST_F(ChannelTest, PathsMayBeLongerThanAddresses) {
  const std::string deep = dir_ / (std::string(100, 'a') + "/" + std::string(100, 'b'));
  std::filesystem::create_directories(deep);
  std::ofstream(deep + "/recipe.json") << "{}";
  const ControlChannel channel(deep);
  EXPECT_FALSE(ControlClient(deep).by_files());
}

TEST_F(ChannelTest, FilesAreAnsweredByFilesOnce) {
  ControlChannel channel(run_dir());
  std::filesystem::create_directories(dir_ / "ctl");
  std::ofstream(dir_ / "ctl/001.lua") << "cmd.stop()\n";
  const std::vector<OperatorLine> lines = channel.poll(0);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].code, "cmd.stop()\n");
  channel.answer(lines[0], false, "no");
  EXPECT_EQ(read_file(dir_ / "ctl/001.out"), "error: no\n");
  EXPECT_TRUE(channel.poll(0).empty());
}

TEST_F(ChannelTest, LinksInTheFolderOfFilesAreNotFollowed) {
  std::filesystem::create_directories(dir_ / "ctl");
  std::ofstream(dir_ / "foreign") << "text";
  std::ofstream(dir_ / "ctl/001.lua") << "cmd.stop()\n";
  for (const char* name : {"001.out.tmp", "002.lua", "003.tmp"})
    std::filesystem::create_symlink(dir_ / "foreign", dir_ / ("ctl/" + std::string(name)));
  ControlChannel channel(run_dir());  // answers what is there already
  EXPECT_EQ(read_file(dir_ / "ctl/001.out"), "error: the run ended before it read this\n");
  EXPECT_TRUE(channel.poll(0).empty());
  EXPECT_EQ(read_file(dir_ / "foreign"), "text");
}

TEST_F(ChannelTest, ClientsThatWriteAtOnceGetAFileEach) {
  // Their drafts have the names' numbers, so one that another client has begun is passed over; so is a link.
  std::filesystem::create_directories(dir_ / "ctl");
  std::ofstream(dir_ / "foreign") << "text";
  std::filesystem::create_symlink(dir_ / "foreign", dir_ / "ctl/001.tmp");
  std::ofstream(dir_ / "ctl/002.tmp") << "half a li";
  std::ofstream(dir_ / "LOCK") << owner_line(this_process(1));
  ControlClient client(run_dir());
  ASSERT_TRUE(client.by_files());
  EXPECT_THROW(client.ask("cmd.save()", true, 0.1), Error) << "nobody answers";
  EXPECT_EQ(read_file(dir_ / "ctl/003.lua"), "cmd.save()\n");
  EXPECT_EQ(read_file(dir_ / "ctl/002.tmp"), "half a li");
  EXPECT_EQ(read_file(dir_ / "foreign"), "text");
}

TEST_F(ChannelTest, AClientWithoutASocketUsesFiles) {
  std::ofstream(dir_ / "LOCK") << owner_line(this_process(1));
  ControlClient client(run_dir());
  EXPECT_TRUE(client.by_files());
  auto answer = std::async(std::launch::async, [&] { return client.ask("cmd.save()", true); });
  ControlChannel channel(run_dir());
  std::vector<OperatorLine> lines;
  const auto both = [&] {
    return lines.empty() && answer.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready;
  };
  while (both()) lines = channel.poll(10);
  for (const OperatorLine& line : lines) channel.answer(line, true, "saved");
  const ControlAnswer got = answer.get();
  EXPECT_TRUE(got.text == "saved" || got.text == "the run ended before it read this");
}

TEST_F(ChannelTest, AnEndedRunIsAnErrorNotAWait) {
  auto channel = std::make_unique<ControlChannel>(run_dir());
  ControlClient client(run_dir());
  channel->poll(0);
  channel.reset();
  EXPECT_THROW(client.ask("1", false, 5), Error);
}

TEST_F(ChannelTest, ALineTooLongClosesTheConnectionAndNothingElse) {
  ControlChannel channel(run_dir());
  ControlClient client(run_dir());
  EXPECT_TRUE(channel.poll(10).empty());
  auto answer =
      std::async(std::launch::async, [&] { return client.ask(std::string(2'000'000, 'x'), false, 5); });
  for (int i = 0; i < 100 && answer.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready; ++i)
    EXPECT_TRUE(channel.poll(10).empty());
  EXPECT_THROW(answer.get(), Error);
  ControlClient next(run_dir());
  EXPECT_FALSE(next.by_files());
}

}  // namespace
}  // namespace tycho
