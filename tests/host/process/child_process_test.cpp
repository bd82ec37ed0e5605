// Processes of ours: where their output goes, what they see, how they end.
#include "host/process/child_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "trainer/base/error.h"

namespace tycho {
namespace {

ChildCommand shell_command(const std::string& text) { return {.argv = {"/bin/sh", "-c", text}}; }

ChildEnd end_of(ChildProcess& child) {
  std::optional<ChildEnd> end;
  while (!(end = child.poll())) usleep(1000);
  return *end;
}

/// All that a piped child writes.
std::string output_of(const ChildCommand& command) {
  ChildProcess child(command);
  std::string text;
  for (;;) {
    pollfd file = {child.output(), POLLIN, 0};
    ::poll(&file, 1, -1);
    char buffer[256];
    const ssize_t n = read(child.output(), buffer, sizeof buffer);
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  end_of(child);
  return text;
}

TEST(ChildProcessTest, TellsHowItEnded) {
  ChildProcess well(shell_command("exit 0"));
  EXPECT_EQ(end_of(well).code, 0);
  EXPECT_FALSE(well.is_running());
  EXPECT_FALSE(well.poll());
  ChildProcess badly(shell_command("exit 7"));
  EXPECT_EQ(end_of(badly).code, 7);
  ChildProcess killed(shell_command("kill -9 $$"));
  const ChildEnd end = end_of(killed);
  EXPECT_EQ(end.code, 137);
  EXPECT_EQ(end.signal, SIGKILL);
  ChildProcess missing(ChildCommand{.argv = {"/no/such/program"}});
  EXPECT_EQ(end_of(missing).code, 127);
}

TEST(ChildProcessTest, APipeTakesBothStreamsAndInputIsEmpty) {
  ChildCommand command = shell_command("echo out; echo err >&2; cat; pwd; echo $GIVEN");
  command.is_piped = true;
  command.folder = "/";
  command.environment = {{"GIVEN", "value"}};
  EXPECT_EQ(output_of(command), "out\nerr\n/\nvalue\n");
}

TEST(AskProcess, GivesTheEndAndAllThatWasPrinted) {
  using namespace std::chrono_literals;
  const auto answer = ask_process(shell_command("echo out; echo err >&2; cat; exit 7"), 60s, 100);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->output, "out\nerr\n");
  EXPECT_EQ(answer->end.code, 7);
  EXPECT_EQ(ask_process({.argv = {"/no/such/program"}}, 60s, 100)->end.code, 127);
}

TEST(AskProcess, EndsAProcessThatTakesTooLongOrPrintsTooMuch) {
  using namespace std::chrono_literals;
  EXPECT_FALSE(ask_process(shell_command("echo early; exec sleep 60"), 50ms, 100));
  EXPECT_FALSE(ask_process(shell_command("exec >&- 2>&-; exec sleep 60"), 50ms, 100));
  EXPECT_FALSE(ask_process(shell_command("while :; do echo much; done"), 60s, 100));
}

TEST(ChildProcessTest, AFileTakesBothStreamsAtItsEnd) {
  std::string folder = (std::filesystem::temp_directory_path() / "tycho-child-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  ChildCommand command = shell_command("echo more; echo err >&2");
  command.output = folder + "/output.txt";
  std::ofstream(command.output) << "first\n";
  ChildProcess child(command);
  EXPECT_EQ(end_of(child).code, 0);
  std::ifstream file(command.output);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "first\nmore\nerr\n");
  std::filesystem::remove_all(folder);
}

TEST(ChildProcessTest, LeavesTheEnvironmentHereAsItWas) {
  setenv("TYCHO_TEST_KEPT", "mine", 1);
  unsetenv("TYCHO_TEST_NEW");
  ChildCommand command = shell_command("echo $TYCHO_TEST_KEPT $TYCHO_TEST_NEW");
  command.is_piped = true;
  command.environment = {{"TYCHO_TEST_KEPT", "theirs"}, {"TYCHO_TEST_NEW", "new"}};
  EXPECT_EQ(output_of(command), "theirs new\n");
  EXPECT_STREQ(getenv("TYCHO_TEST_KEPT"), "mine");
  EXPECT_EQ(getenv("TYCHO_TEST_NEW"), nullptr);
}

TEST(ChildProcessTest, StartsWithNoSignalBlockedOrIgnored) {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t taken, before;
  sigemptyset(&taken);
  sigaddset(&taken, SIGTERM);
  sigprocmask(SIG_BLOCK, &taken, &before);
  ChildProcess child(shell_command("kill -TERM $$; exit 3"));
  EXPECT_EQ(end_of(child).code, 143);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  ChildProcess writer(shell_command("kill -PIPE $$; exit 3"));
  EXPECT_EQ(end_of(writer).code, 128 + SIGPIPE);
}

TEST(ChildProcessTest, IsInTheGroupThatWasAskedFor) {
  ChildProcess here(shell_command("exec sleep 10"));
  EXPECT_EQ(getpgid(here.pid()), getpgrp());
  ChildCommand apart = shell_command("echo ready; exec sleep 10");
  apart.own_group = apart.is_piped = true;
  ChildProcess there(apart);
  pollfd file = {there.output(), POLLIN, 0};
  ::poll(&file, 1, -1);
  EXPECT_EQ(getpgid(there.pid()), there.pid());
  there.send(SIGKILL);
  EXPECT_EQ(end_of(there).code, 137);
  here.send(SIGTERM);
  EXPECT_EQ(end_of(here).code, 143);
  here.send(SIGKILL);  // nobody is there: nothing happens
}

}  // namespace
}  // namespace tycho
