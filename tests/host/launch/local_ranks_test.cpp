// Ranks that are programs of the shell: what they see and write, and what happens when one ends badly, when a
// signal comes, when the launcher is killed.
#include "host/launch/local_ranks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <thread>

#include "tests/host/default_signals.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

class LocalRanksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tycho-launch-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// A launcher in a process of its own, whose ranks run this text in the folder; stdout goes to "out",
  /// stderr to "err".
  pid_t start(int num_ranks, const std::string& text, double grace_s = 30, int ignored = 0) {
    for (int rank = 0; rank < num_ranks; ++rank) fs::remove(folder_ / ("pid-" + std::to_string(rank)));
    fflush(stdout);  // or the child would print it again
    const pid_t child = fork();
    if (child != 0) return child;
    setpgid(0, 0);  // signals of a test reach the launcher alone
    if (ignored != 0) signal(ignored, SIG_IGN);
    const auto to = [&](const char* name, int file) {
      dup2(open((folder_ / name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), file);
    };
    to("out", STDOUT_FILENO);
    to("err", STDERR_FILENO);
    if (chdir(folder_.c_str()) != 0) _exit(98);
    LocalRanks ranks;
    ranks.argv = {"/bin/sh", "-c", text};
    ranks.num_ranks = num_ranks;
    ranks.grace = std::chrono::duration<double>(grace_s);
    try {
      _exit(run_local_ranks(ranks));
    } catch (const std::exception&) {
      _exit(99);
    }
  }
  static int finish(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  int launch(int num_ranks, const std::string& text, double grace_s = 30) {
    return finish(start(num_ranks, text, grace_s));
  }
  std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::multiset<std::string> lines(const std::string& name) const {
    std::istringstream text(read(name));
    std::multiset<std::string> found;
    for (std::string line; std::getline(text, line);) found.insert(line);
    return found;
  }
  static bool wait_for(const std::function<bool()>& holds) {
    for (int i = 0; i < 12000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  /// Waits until every rank wrote its process id to "pid-RANK".
  bool wait_for_pids(int num_ranks) const {
    return wait_for([&] {
      for (int rank = 0; rank < num_ranks; ++rank)
        if (read("pid-" + std::to_string(rank)).find('\n') == std::string::npos) return false;
      return true;
    });
  }
  bool is_gone(int rank) const {
    const pid_t pid = std::stoi(read("pid-" + std::to_string(rank)));
    std::ifstream status("/proc/" + std::to_string(pid) + "/stat");  // a zombie has ended too
    std::string text;
    std::getline(status, text);  // an iterator throws when the process ends between here and the read
    return text.empty() || text.find(") Z ") != std::string::npos || text.find(") X ") != std::string::npos;
  }

  fs::path folder_;
};

const std::string kSayPid = "echo $$ > tmp-$TYCHO_RANK; mv tmp-$TYCHO_RANK pid-$TYCHO_RANK; ";
/// Ends with 128 + signal like a run that saved, and says which signal came.
const std::string kSaveOnSignals =
    "trap 'echo INT >> got-$TYCHO_RANK; exit 130' INT; trap 'echo TERM >> got-$TYCHO_RANK; exit 143' TERM; "
    "trap 'echo USR1 >> got-$TYCHO_RANK; exit 138' USR1; trap 'echo USR2 >> got-$TYCHO_RANK; exit 140' USR2; "
    "trap 'echo HUP >> got-$TYCHO_RANK; exit 129' HUP; trap 'echo XCPU >> got-$TYCHO_RANK; exit 152' XCPU; ";
const std::string kWait = "while :; do sleep 0.02; done";
const std::string kStubborn = "trap '' TERM; ";

/// Waits until the launcher took note of the end of a rank.
std::string after(int rank) {
  const std::string file = "pid-" + std::to_string(rank);
  return "while [ ! -e " + file + " ] || kill -0 $(cat " + file + ") 2>/dev/null; do sleep 0.01; done; ";
}

TEST_F(LocalRanksTest, EveryRankGetsItsPlaceAndTheRendezvous) {
  EXPECT_EQ(launch(3, "env | grep ^TYCHO_ | sort > env-$TYCHO_RANK"), 0);
  std::set<std::string> meeting_places;
  for (int rank = 0; rank < 3; ++rank) {
    const std::string name = "env-" + std::to_string(rank), number = std::to_string(rank);
    const auto seen = lines(name);
    for (const std::string& line :
         {"TYCHO_RANK=" + number, "TYCHO_LOCAL_RANK=" + number, std::string("TYCHO_NUM_RANKS=3"),
          std::string("TYCHO_NUM_LOCAL_RANKS=3"), std::string("TYCHO_ADDRESS=127.0.0.1")})
      EXPECT_EQ(seen.count(line), 1u) << line;
    std::string place;
    for (const std::string& line : seen)
      if (line.starts_with("TYCHO_PORT=") || line.starts_with("TYCHO_TOKEN=")) place += line + "\n";
    EXPECT_CONTAINS(place, "TYCHO_PORT=");
    EXPECT_CONTAINS(place, "TYCHO_TOKEN=");
    meeting_places.insert(place);
  }
  EXPECT_EQ(meeting_places.size(), 1u);
  EXPECT_EQ(launch(3, "env | grep ^TYCHO_TOKEN > env-$TYCHO_RANK"), 0);
  EXPECT_EQ(meeting_places.begin()->find(read("env-0")), std::string::npos) << "every run has its own token";
}

/// The state and inode of the socket that listens at the port of TYCHO_PORT, "0A 12345", into a file.
const std::string kSayListener =
    "hex=$(printf %04X $TYCHO_PORT); awk -v at=0100007F:$hex '$2 == at { print $4, $10 }' /proc/net/tcp > "
    "at-$TYCHO_RANK; [ \"$TYCHO_LISTENER_FD\" ] && readlink /proc/$$/fd/$TYCHO_LISTENER_FD > "
    "fd-$TYCHO_RANK; ";

TEST_F(LocalRanksTest, RankZeroInheritsAListenerSoThatItsPortCannotBeTaken) {
  EXPECT_EQ(launch(2, kSayListener + "exit 0"), 0);
  const std::string inode = read("fd-0").substr(std::string("socket:[").size());
  EXPECT_EQ(read("at-0"), "0A " + inode.substr(0, inode.find(']')) + "\n") << "it listens already";
  EXPECT_FALSE(fs::exists(folder_ / "fd-1"));
}

TEST_F(LocalRanksTest, ThePortClosesWithRankZero) {
  EXPECT_EQ(launch(2, kSayPid + "[ $TYCHO_RANK = 0 ] && exit 0; " + after(0) + kSayListener + "exit 0"), 0);
  EXPECT_EQ(read("at-1"), "") << "the launcher keeps it open, and calls to it would hang";
}

TEST_F(LocalRanksTest, RankZeroKeepsItsStreamsAndOthersAreMarkedLineByLine) {
  EXPECT_EQ(launch(3, "echo out $TYCHO_RANK; echo err $TYCHO_RANK >&2; printf 'no end'; cat"), 0);
  EXPECT_EQ(read("out"), "out 0\nno end");
  EXPECT_EQ(lines("err"),
            (std::multiset<std::string>{"err 0", "[rank 1] out 1", "[rank 1] err 1", "[rank 1] no end",
                                        "[rank 2] out 2", "[rank 2] err 2", "[rank 2] no end"}));
}

TEST_F(LocalRanksTest, MuchOutputIsNotLost) {
  EXPECT_EQ(launch(2, "[ $TYCHO_RANK = 0 ] || seq 1 50000"), 0);
  const std::string text = read("err");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 50000);
  EXPECT_TRUE(text.ends_with("[rank 1] 50000\n"));
}

TEST_F(LocalRanksTest, AProcessThatARankLeavesBehindIsNotWaitedFor) {
  EXPECT_EQ(launch(2, "if [ $TYCHO_RANK = 1 ]; then echo here; sleep 60 & echo $! > left; fi"), 0);
  EXPECT_EQ(read("err"), "[rank 1] here\n");
  EXPECT_EQ(kill(std::stoi(read("left")), SIGKILL), 0) << "it had ended before the launcher";
}

TEST_F(LocalRanksTest, TheFirstBadEndIsTheExitCodeAndTheOthersMayEndByThemselves) {
  EXPECT_EQ(launch(3, kSayPid + "[ $TYCHO_RANK = 1 ] && exit 11; " + after(1) + "exit 1"), 11);
  EXPECT_EQ(launch(2, kSayPid + "[ $TYCHO_RANK = 0 ] && exit 5; " + after(0)), 5);
}

TEST_F(LocalRanksTest, RanksThatDoNotEndGetSigtermAndThenSigkill) {
  EXPECT_EQ(launch(2, kSayPid + kSaveOnSignals + "[ $TYCHO_RANK = 1 ] && exit 12; " + kWait, 2), 12);
  EXPECT_EQ(read("got-0"), "TERM\n");
  EXPECT_CONTAINS(read("err"),
                  "[launch] rank 1 ended with exit code 12; rank 0 must end within 2 s (--grace)\n"
                  "[launch] ending rank 0 (SIGTERM)\n");
  EXPECT_EQ(launch(3, kSayPid + kStubborn + "[ $TYCHO_RANK = 1 ] && exit 12; " + kWait, 0.1), 12);
  EXPECT_CONTAINS(read("err"), "[launch] ending ranks 0, 2 (SIGTERM)\n");
  for (const char* rank : {"0", "2"})
    EXPECT_CONTAINS(read("err"),
                    std::string("[launch] rank ") + rank +
                        " did not end within 0.1 s (--grace) after rank 1 ended with exit code 12: "
                        "killed (SIGKILL)\n");
  for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(is_gone(rank)) << rank;
}

TEST_F(LocalRanksTest, ARankThatIsKilledIsNamed) {
  EXPECT_EQ(launch(2, kSayPid + "[ $TYCHO_RANK = 1 ] && kill -9 $$; " + after(1) + "exit 1"), 137);
  EXPECT_CONTAINS(read("err"),
                  "[launch] rank 1 was killed by SIGKILL: memory may have run out; `dmesg` shows whether it "
                  "did; the same command resumes from the newest checkpoint\n");
  EXPECT_EQ(launch(2, kSayPid + "[ $TYCHO_RANK = 0 ] && kill -SEGV $$; " + after(0) + "exit 1"),
            128 + SIGSEGV);
  EXPECT_CONTAINS(read("err"), "[launch] rank 0 was killed by SIGSEGV; the same");
}

TEST_F(LocalRanksTest, SignalsArePassedOnToAllRanks) {
  for (const auto& [number, name] :
       {std::pair{SIGTERM, "TERM\n"}, std::pair{SIGINT, "INT\n"}, std::pair{SIGUSR1, "USR1\n"},
        std::pair{SIGUSR2, "USR2\n"}, std::pair{SIGHUP, "HUP\n"}, std::pair{SIGXCPU, "XCPU\n"}}) {
    const pid_t launcher = start(3, kSaveOnSignals + kSayPid + kWait);
    ASSERT_TRUE(wait_for_pids(3));
    kill(launcher, number);
    EXPECT_EQ(finish(launcher), 128 + number);
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(read("got-" + std::to_string(rank)), name);
      fs::remove(folder_ / ("got-" + std::to_string(rank)));
    }
  }
}

TEST_F(LocalRanksTest, ASignalThatTheLauncherWasStartedToIgnoreReachesNoRank) {
  const pid_t launcher = start(2, kSaveOnSignals + kSayPid + kWait, 30, SIGHUP);
  ASSERT_TRUE(wait_for_pids(2));
  kill(launcher, SIGHUP);
  kill(std::stoi(read("pid-1")), SIGHUP);  // as a terminal that closes does
  kill(launcher, SIGTERM);
  EXPECT_EQ(finish(launcher), 143);
  for (const char* name : {"got-0", "got-1"}) EXPECT_EQ(read(name), "TERM\n");
}

TEST_F(LocalRanksTest, ASignalThatIsPassedOnStartsADeadline) {
  const pid_t launcher = start(3, "trap '' TERM INT USR1; " + kSayPid + kWait, 0.5);
  ASSERT_TRUE(wait_for_pids(3));
  const auto begin = std::chrono::steady_clock::now();
  kill(launcher, SIGUSR1);
  EXPECT_EQ(finish(launcher), 128 + SIGUSR1);
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, std::chrono::milliseconds(500));
  EXPECT_LT(took, std::chrono::seconds(20));
  EXPECT_CONTAINS(read("err"),
                  "[launch] rank 1 did not end within 0.5 s (--grace) after SIGUSR1: killed (SIGKILL)\n");
  for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(wait_for([&] { return is_gone(rank); })) << rank;
}

TEST_F(LocalRanksTest, AStoppedRankGetsTheSignal) {
  const pid_t launcher = start(2, kSaveOnSignals + kSayPid + kWait);
  ASSERT_TRUE(wait_for_pids(2));
  kill(std::stoi(read("pid-1")), SIGSTOP);
  kill(launcher, SIGTERM);
  EXPECT_EQ(finish(launcher), 143);
  EXPECT_EQ(read("got-1"), "TERM\n");
  EXPECT_EQ(read("err"), "");
}

/// Says each 0.1 s for so many seconds that it is in this phase, as a rank does.
std::string report(const std::string& phase, int seconds) {
  return "i=0; while [ $i -lt " + std::to_string(10 * seconds) + " ]; do echo \"7 " + phase +
         "\" > /proc/$$/fd/$TYCHO_REPORT_FD; sleep 0.1; i=$((i + 1)); done; ";
}

TEST_F(LocalRanksTest, ARankThatStoppedAndSavedLeavesTheOthersTimeToSave) {
  const std::string stopped = "trap '' TERM; " + kSayPid + "[ $TYCHO_RANK = 1 ] && exit 143; " + after(1);
  EXPECT_EQ(launch(2, stopped + report("saving a checkpoint", 3) + "echo saved > saved; exit 143", 0.5), 143);
  EXPECT_EQ(read("saved"), "saved\n");
  EXPECT_EQ(read("err").find("SIGKILL"), std::string::npos) << read("err");
  EXPECT_EQ(launch(2, stopped + "exit 15"), 15) << "the save failed";
}

TEST_F(LocalRanksTest, WhenOneRankHasEndedTheOthersAreGoneWithinTheGrace) {
  // 143: a rank that found another one lost ends as one that was stopped. Stopped ranks are woken.
  for (const char* code : {"143", "11"})
    for (const std::string& other : {"kill -STOP $$; " + kWait, kStubborn + "kill -STOP $$; " + kWait,
                                     kStubborn + report("in a step", 60) + kWait}) {
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_EQ(launch(2,
                       kSayPid + "[ $TYCHO_RANK = 0 ] && " +
                           "{ while [ ! -e pid-1 ]; do sleep 0.01; done; exit " + code + "; }; " + other,
                       2),
                std::stoi(code));
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
      EXPECT_TRUE(is_gone(1)) << other;
      EXPECT_CONTAINS(read("err"),
                      "[launch] rank 0 " + std::string(code == std::string("11") ? "ended" : "stopped") +
                          " with exit code " + code + "; rank 1 must end within 2 s (--grace)\n");
    }
}

TEST_F(LocalRanksTest, ARankThatIsSavingIsNotKilledForIt) {
  const std::string save = "trap '' TERM; [ $TYCHO_RANK = 1 ] && exit 143; ";
  const pid_t launcher =
      start(2, save + kSayPid + report("saving a checkpoint", 4) + "echo whole > saved; exit 143", 1.5);
  ASSERT_TRUE(wait_for([&] { return !read("pid-0").empty(); }));
  kill(launcher, SIGTERM);
  EXPECT_EQ(finish(launcher), 143);
  EXPECT_EQ(read("saved"), "whole\n");
}

TEST_F(LocalRanksTest, ARankThatIsInACallbackOrSilentIsKilled) {
  for (const std::string& behaviour :
       {report("in callback x", 60), report("saving a checkpoint", 1) + kWait}) {
    const pid_t launcher = start(1, "trap '' TERM; " + kSayPid + behaviour, 0.3);
    ASSERT_TRUE(wait_for_pids(1));
    kill(launcher, SIGTERM);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(finish(launcher), 143);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
    EXPECT_CONTAINS(read("err"), "[launch] rank 0 did not end within 0.3 s");
  }
  EXPECT_CONTAINS(read("err"), "after SIGTERM: killed (SIGKILL)\n");
}

/// Ends with this error, as a rank does: rank 0 prints it, too.
std::string fail_with(const std::string& error) {
  return "[ $TYCHO_RANK = 0 ] && echo '" + error + "' >&2; echo '!\"" + error +
         "\"' > /proc/$$/fd/$TYCHO_REPORT_FD; exit 12; ";
}

TEST_F(LocalRanksTest, AnErrorOfSeveralRanksIsPrintedOnce) {
  EXPECT_EQ(launch(4, fail_with("bad data")), 12);
  EXPECT_EQ(read("err"), "bad data\n");
  EXPECT_EQ(launch(4, "[ $TYCHO_RANK = 0 ] && exit 12; " + fail_with("bad data")), 12);
  EXPECT_NE(read("err").find("] bad data\n"), std::string::npos) << read("err");
  EXPECT_EQ(read("err").find("bad data"), read("err").rfind("bad data")) << read("err");
}

TEST_F(LocalRanksTest, OtherErrorsOfRanksArePrintedToo) {
  EXPECT_EQ(launch(2, "[ $TYCHO_RANK = 1 ] && { " + fail_with("no disk") + "}; " + fail_with("bad data")),
            12);
  EXPECT_EQ(lines("err"), (std::multiset<std::string>{"bad data", "[rank 1] no disk"}));
}

TEST_F(LocalRanksTest, AnErrorIsPrintedWhileOtherRanksRunOn) {
  const pid_t launcher =
      start(2, "[ $TYCHO_RANK = 1 ] && { " + fail_with("no disk") + "}; trap '' TERM; " + kSayPid + kWait);
  EXPECT_TRUE(wait_for([&] { return read("err").find("[rank 1] no disk\n") != std::string::npos; }));
  ASSERT_TRUE(wait_for([&] { return !read("pid-0").empty(); }));
  kill(std::stoi(read("pid-0")), SIGKILL);
  EXPECT_EQ(finish(launcher), 12);
}

TEST_F(LocalRanksTest, AStepMayEndAsLateAsTheLongestBefore) {
  const std::string steps =
      "for step in 1 2 3; do echo \"$step training\" > /proc/$$/fd/$TYCHO_REPORT_FD; "
      "(trap '' TERM; exec sleep 2.5); echo $step > step; done; ";
  const pid_t launcher = start(1, "trap 'told=1' TERM; " + kSayPid + steps + "[ \"$told\" ] && exit 143", 1);
  ASSERT_TRUE(wait_for([&] { return read("step") == "2\n"; }));
  kill(launcher, SIGTERM);  // at the beginning of the third, which takes 2.5 s
  EXPECT_EQ(finish(launcher), 143);
  EXPECT_EQ(read("step"), "3\n");
}

TEST_F(LocalRanksTest, NoRankSurvivesAKilledLauncher) {
  const pid_t launcher = start(3, kStubborn + kSayPid + kWait);
  ASSERT_TRUE(wait_for_pids(3));
  kill(launcher, SIGKILL);
  EXPECT_EQ(finish(launcher), 1000 + SIGKILL);
  for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(wait_for([&] { return is_gone(rank); })) << rank;
}

TEST_F(LocalRanksTest, AClosedStderrEndsNoRank) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  signal(SIGPIPE, SIG_IGN);  // as main.cpp
  fflush(stdout);
  const pid_t launcher = fork();
  if (launcher == 0) {
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    if (chdir(folder_.c_str()) != 0) _exit(98);
    LocalRanks ranks;
    ranks.argv = {"/bin/sh", "-c", "echo lost; sleep 0.1; echo $TYCHO_RANK > end-$TYCHO_RANK"};
    ranks.num_ranks = 2;
    _exit(run_local_ranks(ranks));
  }
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(finish(launcher), 0);
  EXPECT_EQ(read("end-1"), "1\n");
}

}  // namespace
}  // namespace tycho
