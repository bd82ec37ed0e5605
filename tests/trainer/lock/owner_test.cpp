// Who holds a LOCK, and whether that process is still there.
#include "trainer/lock/owner.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/trainer/checkpoint/checkpoint_fixture.h"

namespace tycho {
namespace {

TEST(Owner, SurvivesItsLine) {
  Owner owner = this_process(3);
  owner.job = "99";
  owner.restarts = 2;
  const std::string line = owner_line(owner);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(owner_line(parse_owner(line + "....", "LOCK")), line);
  EXPECT_TRUE(same_machine(owner));
  EXPECT_EQ(owner.pid, ::getpid());
  EXPECT_EQ(owner.uuid.size(), 32u);
  EXPECT_NE(owner.uuid, this_process(3).uuid);
}

TEST(Owner, RefusesOtherLines) {
  const std::string good = owner_line(this_process(3));
  for (const std::string& bad :
       {std::string(), std::string("{}"), std::string("{}\n"), std::string("3\n"),
        good.substr(0, good.size() - 1), std::string(5000, ' ') + good,
        "{\"epoch\":-1," + good.substr(good.find("\"host\"")),
        "{\"boot_id\":\"x\",\"epoch\":9223372036854775807," + good.substr(good.find("\"host\""))}) {
    EXPECT_EQ(failure_of([&] { parse_owner(bad, "LOCK"); }).code, ExitCode::kUnusable) << bad;
  }
}

TEST(Owner, KnowsWhetherAProcessIsStillAlive) {
  EXPECT_EQ(process_state(this_process(0)), ProcessState::kRuns);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string line = owner_line(this_process(0));
    if (::write(ready[1], line.data(), line.size()) < 0) ::_exit(1);
    while (true) ::pause();
  }
  char line[4096];
  const ssize_t n = ::read(ready[0], line, sizeof line);
  ASSERT_GT(n, 0);
  const Owner owner = parse_owner({line, static_cast<size_t>(n)}, "pipe");
  EXPECT_EQ(process_state(owner), ProcessState::kRuns);
  ::kill(child, SIGSTOP);
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  EXPECT_EQ(process_state(owner), ProcessState::kStopped);
  ::kill(child, SIGKILL);
  siginfo_t info;
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_EQ(process_state(owner), ProcessState::kGone);  // a zombie
  ::waitpid(child, &status, 0);
  EXPECT_EQ(process_state(owner), ProcessState::kGone);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(Owner, OnlyALaterStartOfTheSameJobIsOne) {
  const Owner none, first = {.job = "99", .restarts = 0}, second = {.job = "99", .restarts = 1};
  const Owner other = {.job = "98", .restarts = 5};
  EXPECT_TRUE(is_later_start(second, first));
  EXPECT_FALSE(is_later_start(first, second));
  EXPECT_FALSE(is_later_start(first, first));
  EXPECT_FALSE(is_later_start(other, first));
  EXPECT_FALSE(is_later_start(none, none));
}

}  // namespace
}  // namespace tycho
