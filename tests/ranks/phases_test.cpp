// Signals in every phase of a run of one process, and a process that wakes after it has lost its folder.
#include <signal.h>

#include <chrono>
#include <set>
#include <thread>

#include "tests/ranks/ranks_fixture.h"
#include "trainer/lock/run_lock.h"

namespace tycho {
namespace {

/// A fault that makes a phase last: the call sleeps, and a signal comes meanwhile.
class SignalTest : public RanksTest {
 protected:
  static std::string sleep_at(const std::string& call, const std::string& path, int nth = 1) {
    return "env LD_PRELOAD=" TYCHO_FAULT_SHIM " TYCHO_FAULT_MARK=mark TYCHO_FAULT=call=" + call +
           ",path=" + path + ",nth=" + std::to_string(nth) + ",do=sleep,ms=1500,rank=-1 ";
  }
  /// Starts a run in the folder "r", waits until `is_there` holds, sends the signal; its code is in "code N".
  Outcome interrupt(const std::string& before, const std::string& is_there,
                    const std::string& signal = "TERM", const std::string& pins = "") const {
    return here("rm -f mark; (exec env --default-signal=INT " + before +
                TYCHO_PROGRAM " run x.lua run_dir=r " + pins +
                ") >log 2>&1 & pid=$!; for i in $(seq 1200); do " + is_there +
                " && break; sleep 0.05; done; kill -" + signal + " $pid; wait $pid; echo code $?; cat log");
  }
  static double seconds_of(const std::function<void()>& action) {
    const auto begin = std::chrono::steady_clock::now();
    action();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
};

TEST_F(SignalTest, WhileDataIsOpenedNothingIsTrained) {
  const Outcome outcome = interrupt(sleep_at("open", "index.json"), "test -e mark");
  EXPECT_CONTAINS(outcome.output, "code 143\n");
  EXPECT_TRUE(numbers("r", "loss").empty());
}

TEST_F(SignalTest, CtrlCWhileTheRecipeIsCheckedIsNotLost) {
  const Outcome outcome = interrupt(sleep_at("open", "index.json"), "test -e mark", "INT");
  EXPECT_CONTAINS(outcome.output, "code 130\n");
  EXPECT_FALSE(fs::exists(folder_ / "r")) << "it ran";
}

TEST_F(SignalTest, WhileACheckpointIsReadNothingIsTrained) {
  ASSERT_EQ(here("tycho run x.lua run_dir=r --until 8ba").code, 0);
  const Outcome outcome = interrupt(sleep_at("pread", "/rank-00000.safetensors"), "test -e mark");
  EXPECT_CONTAINS(outcome.output, "code 143\n");
  EXPECT_CONTAINS(outcome.output, "[run] stopped by SIGTERM before the first step: nothing was trained");
  EXPECT_EQ(numbers("r", "loss").rbegin()->first, 8);
}

TEST_F(SignalTest, WhileItEvaluatesTheEvaluationEnds) {
  write(recipe("r.eval_data.same = t.data.mds { local_dir = \"val\" }\n"));
  fs::copy(data_, folder_ / "val", fs::copy_options::recursive);
  const Outcome outcome = interrupt(sleep_at("pread", "/val/", 20), "test -e mark");
  EXPECT_CONTAINS(outcome.output, "code 143\n");
  EXPECT_TRUE(events("r", "eval").empty());
  ASSERT_FALSE(events("r", "checkpoint").empty());
  EXPECT_EQ(events("r", "checkpoint").back().at("facts").at("step"), 12);
}

TEST_F(SignalTest, WhileItSavesTheSaveIsCompleted) {
  for (const auto& [name, code] : {std::pair{"TERM", "143"}, {"INT", "130"}, {"USR1", "138"}}) {
    fs::remove_all(folder_ / "r");
    const Outcome outcome =
        interrupt(sleep_at("fsync", "/rank-00000.safetensors"), "test -e mark", name, "ckpt.async=false");
    EXPECT_CONTAINS(outcome.output, std::string("code ") + code + "\n");
    ASSERT_FALSE(events("r", "checkpoint").empty());
    EXPECT_EQ(events("r", "checkpoint").at(0).at("facts").at("step"), 8);
  }
}

TEST_F(SignalTest, RanksThatSaveToASlowDiskAreNotKilledForIt) {
  for (const std::string rank : {"0", "1"}) {
    fs::remove_all(folder_ / "r");
    const Outcome outcome = here("rm -f mark; (exec env LD_PRELOAD=" TYCHO_FAULT_SHIM
                                 " TYCHO_FAULT_MARK=mark TYCHO_FAULT=call=fsync," +
                                 ("path=rank-0000" + rank + ",nth=1,do=sleep,ms=8000,rank=" + rank) +
                                 " " TYCHO_PROGRAM
                                 " launch -n 2 --grace 2 run x.lua run_dir=r parallel.dp_shard=2"
                                 " max_duration=100000ba) >log 2>&1 & pid=$!; for i in $(seq 1200); do test "
                                 "-e mark && break; sleep 0.05;"
                                 " done; kill -TERM $pid; wait $pid; echo code $?; cat log");
    EXPECT_CONTAINS(outcome.output, "code 143\n");
    EXPECT_EQ(outcome.output.find("SIGKILL"), std::string::npos) << outcome.output;
    ASSERT_FALSE(events("r", "checkpoint").empty()) << outcome.output;
    EXPECT_EQ(events("r", "checkpoint").at(0).at("facts").at("step"), 8);
  }
}

TEST_F(SignalTest, ALauncherEndsSoonAfterAStoppedRankWasNamed) {
  Outcome outcome;
  const double took = seconds_of([&] {
    outcome = here("rm -f log; (exec " TYCHO_PROGRAM
                   " launch -n 2 --grace 4 run x.lua run_dir=r max_duration=1000000ba) >log 2>&1 "
                   "& pid=$!; " +
                   until_it_trains("r") +
                   "read first second < /proc/$pid/task/$pid/children; kill -STOP ${second% *}; "
                   "wait $pid; echo code $?; cat log");
  });
  EXPECT_CONTAINS(outcome.output, "code 143\n");
  EXPECT_CONTAINS(outcome.output, "has not answered for 30 s");
  EXPECT_LT(took, 150) << "named after 30 s, and gone 4 s later; a rank that saves has ten minutes";
}

TEST_F(SignalTest, WhileItWaitsForTheFolderItEndsAtOnceAndHadSaidWhatItWaitsFor) {
  fs::create_directories(folder_ / "r");
  std::ofstream(folder_ / "r/LOCK") << "{\"torn";
  Outcome outcome;
  const double took = seconds_of([&] { outcome = interrupt("", "grep -q half log"); });
  EXPECT_CONTAINS(outcome.output, "code 143\n");
  EXPECT_CONTAINS(outcome.output,
                  "r/LOCK is damaged or half written: taking the folder if the file does not change");
  EXPECT_LT(took, 45) << "the folder would be taken after 60 s";
}

TEST_F(SignalTest, ALockThatIsAPipeIsAnErrorAtOnce) {
  fs::create_directories(folder_ / "r");
  const Outcome outcome = here("mkfifo r/LOCK && timeout 30 " TYCHO_PROGRAM " run x.lua run_dir=r");
  EXPECT_EQ(outcome.code, 12);
  EXPECT_CONTAINS(outcome.output, "to be a file, found a pipe or device");
}

TEST_F(SignalTest, InACallbackThatDoesNotEndItEndsTheCallback) {
  write(
      recipe("r.callbacks.x = t.control { batch_end = function(ctx) if ctx.step == 3 then while true do end "
             "end end }\n"));
  Outcome outcome;
  const double took =
      seconds_of([&] { outcome = interrupt("", "grep -q '\"step\":3' r/metrics.jsonl 2>/dev/null"); });
  EXPECT_CONTAINS(outcome.output, "code 143\n");
  EXPECT_LT(took, 25) << "its own limit is 30 s";
  ASSERT_FALSE(events("r", "checkpoint").empty());
  EXPECT_EQ(events("r", "checkpoint").back().at("facts").at("step"), 3);
}

/// Every file of a run but its LOCK, and what is in it.
std::map<std::string, std::string> contents(const fs::path& run) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    if (entry.path().filename() == "LOCK") continue;
    all[entry.path().string()] = entry.is_regular_file() ? read_file(entry.path().string()) : "";
  }
  return all;
}

TEST_F(SignalTest, AFormerOwnerThatIsWokenWritesNothing) {
  const std::string run = (folder_ / "r").string();
  here("(sh -c \"echo \\$\\$ > pid; exec " TYCHO_PROGRAM
       " run x.lua run_dir=r max_duration=100000ba ckpt.every=5ba\"; echo $? > code.tmp; mv code.tmp code) "
       ">log 2>&1 & true");
  ASSERT_EQ(here(until_it_trains("r") + "sleep 0.3").code, 0);
  const pid_t pid = std::stoi(text("pid"));
  kill(pid, SIGSTOP);
  const std::string state = "/proc/" + std::to_string(pid) + "/stat";
  while (read_file(state).find(") T ") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  {
    const RunLock successor(real_files(), run, 0.7);
    EXPECT_EQ(successor.epoch(), 2);
    fs::remove(run + "/control.sock");
    std::ofstream(run + "/control.sock") << "the successor's";
    for (const char* name : {"/metrics.jsonl", "/events.jsonl"})
      std::ofstream(run + name, std::ios::app) << "{}\n";
    const auto before = contents(run);
    kill(pid, SIGCONT);
    for (int i = 0; i < 1200 && !fs::exists(folder_ / "code"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(text("code"), "13\n") << text("log");
    EXPECT_CONTAINS(text("log"), "no longer belongs to this run: taken over by process");
    const auto after = contents(run);
    for (const auto& [name, bytes] : after)
      EXPECT_TRUE(before.contains(name) && before.at(name) == bytes) << name;
    // But for what it was just writing under a name of its own, which it takes away.
    const std::string own = ".tmp-" + std::to_string(pid);
    for (const auto& [name, bytes] : before) EXPECT_TRUE(after.contains(name) || name.ends_with(own)) << name;
  }
}

}  // namespace
}  // namespace tycho
