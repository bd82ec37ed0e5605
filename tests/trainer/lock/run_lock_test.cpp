// One owner per run folder: refused while it lives, replaced when it is gone, noticed when it is replaced.
#include "trainer/lock/run_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/checkpoint/checkpoint_fixture.h"
#include "trainer/lock/owner.h"

namespace fs = std::filesystem;

namespace tycho {
namespace {

using namespace std::chrono_literals;

void write_lock(const TempDir& dir, const std::string& text) {
  std::ofstream(dir / "LOCK", std::ios::binary | std::ios::trunc) << text;
}

Owner owner_elsewhere() {
  Owner owner = this_process(7);
  owner.host = "n3";
  owner.boot_id = "another boot";
  owner.pid = 4711;
  return owner;
}

double seconds_of(const std::function<void()>& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Less than what an owner elsewhere is waited for, and more than a busy machine's disk takes.
constexpr double kAtOnce_s = RunLock::kStale_s / 3;

TEST(RunLock, RefusesASecondOwnerAtOnceAndSaysWhoAndWhatToDo) {
  const TempDir dir;
  const RunLock first(real_files(), dir.path());
  Failure failure;
  EXPECT_LT(seconds_of([&] { failure = failure_of([&] { RunLock second(real_files(), dir.path()); }); }),
            kAtOnce_s);
  EXPECT_EQ(failure.code, ExitCode::kFolderOwned);
  EXPECT_TRUE(failure.says("process " + std::to_string(::getpid()))) << failure.message;
  EXPECT_TRUE(failure.says("kill " + std::to_string(::getpid()))) << failure.message;
  EXPECT_TRUE(failure.says("remove " + (dir / "LOCK"))) << failure.message;
  EXPECT_NO_THROW(first.check());
}

TEST(RunLock, EpochGrowsWithEveryOwner) {
  const TempDir dir;
  for (int64_t epoch = 1; epoch <= 3; ++epoch) {
    const RunLock lock(real_files(), dir / "run");
    EXPECT_EQ(lock.epoch(), epoch);
    lock.check();
  }
  EXPECT_TRUE(read_file(dir / "run/LOCK").ends_with("\nreleased\n"));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir / "run"), fs::directory_iterator()), 1);
}

TEST(RunLock, EpochStaysAboveTheCheckpointsWhenLockIsRemoved) {
  const TempDir dir;
  CheckpointStore store(real_files(), dir / "checkpoints", 0, 5);
  save_step(store, 1);
  const RunLock lock(real_files(), dir.path(), RunLock::kStale_s, {},
                     [&] { return newest_epoch(dir / "checkpoints"); });
  EXPECT_EQ(lock.epoch(), 6);
}

TEST(RunLock, ReplacesADeadOwnerAtOnce) {
  const TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(real_files(), dir.path());
    ::_exit(lock.epoch() == 1 ? 0 : 1);  // without destructors, as killed
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_LT(seconds_of([&] { EXPECT_EQ(RunLock(real_files(), dir.path()).epoch(), 2); }), kAtOnce_s);
}

TEST(RunLock, AProcessIdThatWasUsedAgainIsNotTheOwner) {
  const TempDir dir;
  Owner owner = this_process(3);
  owner.start_ticks -= 1;
  write_lock(dir, owner_line(owner));
  EXPECT_EQ(RunLock(real_files(), dir.path()).epoch(), 4);
}

TEST(RunLock, WaitsForASilentOwnerElsewhere) {
  const TempDir dir;
  write_lock(dir, owner_line(owner_elsewhere()) + "...");
  double waited = 0;
  waited = seconds_of([&] { EXPECT_EQ(RunLock(real_files(), dir.path(), 0.3).epoch(), 8); });
  EXPECT_GE(waited, 0.3);
  EXPECT_LT(waited, 5.0);
}

TEST(RunLock, RefusesWhenAnOwnerElsewhereGivesASign) {
  const TempDir dir;
  Owner owner = owner_elsewhere();
  owner.job = "99";
  owner.restarts = 1;
  write_lock(dir, owner_line(owner));
  std::atomic<bool> done = false;
  std::thread beats([&] {
    while (!done) {
      std::this_thread::sleep_for(50ms);
      std::ofstream(dir / "LOCK", std::ios::app) << '.';
    }
  });
  const Failure failure = failure_of([&] { RunLock lock(real_files(), dir.path(), 5); });
  done = true;
  beats.join();
  EXPECT_EQ(failure.code, ExitCode::kFolderOwned);
  EXPECT_TRUE(failure.says("process 4711 on host n3, Slurm job 99 (restart 1)")) << failure.message;
  EXPECT_TRUE(failure.says("scancel 99")) << failure.message;
}

TEST(RunLock, ALaterStartOfTheSameJobTakesOverAtOnce) {
  const TempDir dir;
  Owner owner = owner_elsewhere();
  owner.job = "99";
  owner.restarts = 1;
  write_lock(dir, owner_line(owner));
  ::setenv("SLURM_JOB_ID", "99", 1);
  ::setenv("SLURM_RESTART_COUNT", "2", 1);
  const double waited = seconds_of([&] { EXPECT_EQ(RunLock(real_files(), dir.path()).epoch(), 8); });
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_RESTART_COUNT");
  EXPECT_LT(waited, 1.0);
}

TEST(RunLock, AnUnreadableLockIsReplacedWhenItStaysSilent) {
  for (const std::string text : {"", "{", "{}\n", "\x01\x02\n", "[[[[\n", "null\n"}) {
    const TempDir dir;
    write_lock(dir, text);
    const RunLock lock(real_files(), dir.path(), 0.1);
    EXPECT_EQ(lock.epoch(), 1);
    lock.check();
  }
}

TEST(RunLock, SaysWhatItWaitsForAndTheWaitCanBeEnded) {
  const TempDir dir;
  write_lock(dir, "{\"torn");
  std::vector<std::string> lines;
  {
    const RunLock lock(real_files(), dir.path(), 0.2,
                       [&](const std::string& line) { lines.push_back(line); });
  }
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines[0].find(dir / "LOCK"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("is damaged or half written"), std::string::npos) << lines[0];

  write_lock(dir, owner_line(owner_elsewhere()));
  struct Stopped {};
  std::string line;
  const double waited = seconds_of([&] {
    EXPECT_THROW(RunLock(real_files(), dir.path(), 60,
                         [&](const std::string& text) {
                           line = text;
                           throw Stopped();
                         }),
                 Stopped);
  });
  EXPECT_LT(waited, 30);
  EXPECT_NE(line.find("process 4711 on host n3"), std::string::npos) << line;
}

TEST(RunLock, ALockThatIsNotAFileIsAnErrorAtOnce) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "LOCK").c_str(), 0600), 0);
  Failure failure = failure_of([&] { RunLock lock(real_files(), dir.path()); });
  EXPECT_EQ(failure.code, ExitCode::kUnusable);
  EXPECT_TRUE(failure.says("found a pipe or device")) << failure.message;
  fs::remove(dir / "LOCK");
  fs::create_directory(dir / "LOCK");
  failure = failure_of([&] { RunLock lock(real_files(), dir.path()); });
  EXPECT_EQ(failure.code, ExitCode::kUnusable);
  EXPECT_TRUE(failure.says("found a folder")) << failure.message;
  fs::remove(dir / "LOCK");
  const TempDir other;
  for (const std::string& target : {other / "LOCK", other / "nothing"}) {
    const RunLock elsewhere(real_files(), other.path());
    fs::create_symlink(target, dir / "LOCK");
    failure = failure_of([&] { RunLock lock(real_files(), dir.path()); });
    EXPECT_EQ(failure.code, ExitCode::kUnusable);
    EXPECT_TRUE(failure.says("found a link")) << failure.message;
    EXPECT_NO_THROW(elsewhere.check());
    fs::remove(dir / "LOCK");
  }
}

TEST(RunLock, FrequentChecksNoticeALossWithinASecond) {
  const TempDir dir;
  const RunLock loser(real_files(), dir.path());
  EXPECT_NO_THROW(loser.check_often());
  write_file_atomically(real_files(), dir / "LOCK", owner_line(owner_elsewhere()));
  std::this_thread::sleep_for(600ms);
  EXPECT_EQ(failure_of([&] { loser.check_often(); }).code, ExitCode::kFolderOwned);
  EXPECT_EQ(failure_of([&] { loser.check_often(); }).code, ExitCode::kFolderOwned) << "and again";
}

TEST(RunLock, TheFormerOwnerNoticesAndItsHeartbeatsChangeNothing) {
  const TempDir dir;
  const RunLock loser(real_files(), dir.path(), 0.12);  // a heartbeat every 10 ms
  const auto beats = [&] { return read_file(dir / "LOCK").ends_with("."); };
  for (int i = 0; i < 6000 && !beats(); ++i) std::this_thread::sleep_for(10ms);
  ASSERT_TRUE(beats());
  const std::string winner = owner_line(owner_elsewhere());
  write_file_atomically(real_files(), dir / "LOCK", winner);
  const Failure failure = failure_of([&] { loser.check(); });
  EXPECT_EQ(failure.code, ExitCode::kFolderOwned);
  EXPECT_TRUE(failure.says("taken over by process 4711 on host n3")) << failure.message;
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(read_file(dir / "LOCK"), winner);
  fs::remove(dir / "LOCK");
  EXPECT_TRUE(failure_of([&] { loser.check(); }).says("its LOCK was removed"));
}

TEST(RunLock, AStoppedOwnerIsReplacedAndCommitsNothingAfterwards) {
  const TempDir dir;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(real_files(), dir.path(), 0.3);
    CheckpointStore store(real_files(), dir / "checkpoints", 0, lock.epoch(), [&] { lock.check(); });
    save_step(store, 1);
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    try {
      for (int64_t step = 2;; ++step) save_step(store, step);
    } catch (const Error& error) {
      ::_exit(static_cast<int>(error.code()));
    }
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  {
    const RunLock lock(real_files(), dir.path(), 0.3);
    EXPECT_EQ(lock.epoch(), 2);
    const std::vector<int64_t> before = steps_in(dir / "checkpoints");
    ::kill(child, SIGCONT);
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::kFolderOwned));
    // A save whose owner check was over before the stop may still land; its epoch sorts it below.
    EXPECT_LE(steps_in(dir / "checkpoints").size(), before.size() + 1);
    lock.check();
  }
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(RunLock, ADeadClaimantDoesNotBlockOthers) {
  const TempDir dir;
  Owner owner = this_process(1);
  owner.start_ticks -= 1;
  std::ofstream(dir / "LOCK.epoch-1") << owner_line(owner);
  EXPECT_EQ(RunLock(real_files(), dir.path(), 0.2).epoch(), 1);
  EXPECT_FALSE(fs::exists(dir / "LOCK.epoch-1"));
}

TEST(RunLock, ExactlyOneOfManyStartsWins) {
  constexpr int kStarts = 8;
  for (int round = 0; round < 10; ++round) {
    const TempDir dir;
    int gate[2];  // who holds the lock reads from it until this process closes it
    ASSERT_EQ(::pipe(gate), 0);
    for (int i = 0; i < kStarts; ++i) {
      if (::fork() != 0) continue;
      ::close(gate[1]);
      try {
        const RunLock lock(real_files(), dir.path(), 1);
        lock.check();
        char none;
        while (::read(gate[0], &none, 1) < 0) {
        }
        lock.check();
        ::_exit(0);
      } catch (const Error& error) {
        ::_exit(static_cast<int>(error.code()));
      }
    }
    // The holder stays until every other start has tried, however slow the machine is.
    int winners = 0;
    for (int i = 0; i < kStarts; ++i) {
      if (i == kStarts - 1) ::close(gate[1]);
      int status = 0;
      ASSERT_GT(::wait(&status), 0);
      ASSERT_TRUE(WIFEXITED(status));
      if (WEXITSTATUS(status) == 0)
        ++winners;
      else
        EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::kFolderOwned));
    }
    ::close(gate[0]);
    EXPECT_EQ(winners, 1);
  }
}

TEST(RunLock, AnUnwritableFolderIsAStorageError) {
  const TempDir dir;
  real_files().create(dir / "file")->close();
  EXPECT_EQ(failure_of([&] { RunLock lock(real_files(), dir / "file/run"); }).code, ExitCode::kStorage);
}

}  // namespace
}  // namespace tycho
