// Ranks that are processes and die, stop, or stick: who is named, what all others say, and how they end.
#include "trainer/rendezvous/meet/monitor.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "tests/trainer/rendezvous/rank_threads.h"

namespace tycho {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// A process of its own; its standard error comes here.
class RankProcess {
 public:
  explicit RankProcess(const std::function<int()>& body) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      process_progress().set_collective("");  // what a test before this one left
      dup2(ends[1], STDERR_FILENO);
      int code = 0;
      try {
        code = body();
      } catch (const Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        code = static_cast<int>(error.code());
      }
      std::fflush(nullptr);
      _exit(code);
    }
    close(ends[1]);
    output_ = Socket(ends[0]);
  }
  ~RankProcess() {
    if (!is_running_) return;
    send(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  void send(int signal) const { kill(pid_, signal); }
  int pid() const { return pid_; }

  /// Reads until it has said `part`, or for `limit`.
  bool says(const std::string& part, std::chrono::milliseconds limit = 60s) {
    const auto until = Clock::now() + limit;
    while (text_.find(part) == std::string::npos) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      pollfd file = {output_.fd(), POLLIN, 0};
      if (left <= 0 || poll(&file, 1, static_cast<int>(left)) <= 0) return false;
      char bytes[4096];
      const ssize_t n = read(output_.fd(), bytes, sizeof bytes);
      if (n <= 0) return text_.find(part) != std::string::npos;
      text_.append(bytes, static_cast<size_t>(n));
    }
    return true;
  }
  /// Its exit code, or minus the signal that killed it; 1000 when it has not ended in time.
  int end(std::chrono::milliseconds limit = 60s) {
    for (const auto until = Clock::now() + limit; Clock::now() < until; std::this_thread::sleep_for(5ms)) {
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) != pid_) continue;
      is_running_ = false;
      says("\1never", 100ms);  // what is left of its words
      return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    return 1000;
  }
  const std::string& text() const { return text_; }

 private:
  pid_t pid_ = -1;
  Socket output_;
  std::string text_;
  bool is_running_ = true;
};

#define EXPECT_SAYS(process, part) EXPECT_TRUE((process).says(part)) << (part) << "\nin\n" << (process).text()

MeetOptions quick() {
  MeetOptions options;
  options.beat_s = 0.1;
  options.silence_s = 1.5;
  return options;
}

/// A rank that trains: it waits until the world is broken, and ends with the reason.
int train(const RankInfo& place, const MeetOptions& options, const char* phase = "evaluating") {
  const auto peers = rendezvous(place, options);
  options.progress->set_step(12);
  const InPhase in_phase(phase);
  const InCollective collective("all_reduce");
  std::this_thread::sleep_for(300ms);  // so that the others have heard of it
  std::fputs("met\n", stderr);
  pollfd file = {peers->broken_fd(), POLLIN, 0};
  poll(&file, 1, -1);
  const Error error = peers->why_broken("somebody left", {});
  throw peers->abort(error);
}

struct World {
  explicit World(int num_ranks, const std::function<int(const RankInfo&)>& body) {
    for (int r = 0; r < num_ranks; ++r)
      ranks.push_back(
          std::make_unique<RankProcess>([&, r] { return body(test_place(r, num_ranks, port.number())); }));
  }
  void expect_met() {
    for (const auto& rank : ranks) ASSERT_TRUE(rank->says("met\n")) << rank->text();
  }
  RankProcess& operator[](int rank) { return *ranks[static_cast<size_t>(rank)]; }
  ReservedPort port;
  std::vector<std::unique_ptr<RankProcess>> ranks;
};

/// What ranks that are processes wait for, until the parent opens it for each of them.
class Gate {
 public:
  Gate() {
    if (pipe(ends_) != 0) throw std::runtime_error("no pipe");
  }
  ~Gate() { close(ends_[0]), close(ends_[1]); }
  void open(size_t num_ranks) const {
    const std::string bytes(num_ranks, 'x');
    EXPECT_EQ(write(ends_[1], bytes.data(), num_ranks), static_cast<ssize_t>(num_ranks));
  }
  void wait() const {
    char byte = 0;
    EXPECT_EQ(read(ends_[0], &byte, 1), 1);
  }

 private:
  int ends_[2];
};

TEST(Monitor, ARankThatIsKilledIsNamedByAllOthersWithWhatItDid) {
  MeetOptions options;
  options.beat_s = 0.1;
  for (const int victim : {0, 1}) {
    World run(3, [&](const RankInfo& place) { return train(place, options); });
    run.expect_met();
    std::this_thread::sleep_for(1100ms);  // some beats
    const auto killed = Clock::now();
    run[victim].send(SIGKILL);
    for (int r = 0; r < 3; ++r) {
      if (r == victim) continue;
      EXPECT_EQ(run[r].end(), static_cast<int>(ExitCode::kTerminated));
      EXPECT_SAYS(run[r], fmt::format("[parallel] rank {} (", victim));
      EXPECT_SAYS(run[r], fmt::format(", pid {}; step 12, evaluating", run[victim].pid()));
      EXPECT_SAYS(run[r], "in all_reduce");
      EXPECT_SAYS(run[r], "has died: its connection");
      EXPECT_SAYS(run[r], "The same command resumes from the newest checkpoint");
    }
    EXPECT_LT(Clock::now() - killed, 5s);  // named within 2 s, and an idle machine's rest
  }
}

TEST(Monitor, OthersSayThatTheyWaitForAPromptOfRankZero) {
  World run(3, [](const RankInfo& place) {
    return train(place, quick(), place.rank == 0 ? kAtPrompt : "evaluating");
  });
  for (int r = 1; r < 3; ++r)
    EXPECT_SAYS(
        run[r],
        fmt::format("[ranks] rank {} waits for rank 0, which is at a prompt of t.debug() after step", r));
  run[1].send(SIGKILL);
  for (const int r : {0, 2})
    EXPECT_EQ(run[r].end(), static_cast<int>(ExitCode::kTerminated)) << "watched as before";
}

TEST(Monitor, RanksThatDieTogetherAreNamedTogether) {
  World run(4, [](const RankInfo& place) { return train(place, {}); });
  run.expect_met();
  run[1].send(SIGKILL);
  run[3].send(SIGKILL);
  for (const int r : {0, 2}) {
    EXPECT_EQ(run[r].end(), static_cast<int>(ExitCode::kTerminated));
    EXPECT_SAYS(run[r], "[parallel] rank 1 (");
  }
  EXPECT_EQ(run[0].text().substr(run[0].text().find("[parallel]")),
            run[2].text().substr(run[2].text().find("[parallel]")));
}

TEST(Monitor, ARankThatStopsAnsweringIsNamed) {
  for (const int victim : {0, 2}) {
    World run(3, [](const RankInfo& place) { return train(place, quick()); });
    run.expect_met();
    run[victim].send(SIGSTOP);
    for (int r = 0; r < 3; ++r) {
      if (r == victim) continue;
      EXPECT_EQ(run[r].end(), static_cast<int>(ExitCode::kTerminated));
      EXPECT_SAYS(run[r], fmt::format("[parallel] rank {} (", victim));
      EXPECT_SAYS(run[r], "has not answered for 1.5 s");
    }
    // When it wakes it learns that the others have gone on without it.
    run[victim].send(SIGCONT);
    EXPECT_EQ(run[victim].end(), static_cast<int>(ExitCode::kTerminated)) << run[victim].text();
  }
}

TEST(Monitor, RanksThatWereAllStoppedAndContinuedGoOn) {
  World run(3, [](const RankInfo& place) { return train(place, quick()); });
  run.expect_met();
  for (const auto& rank : run.ranks) rank->send(SIGSTOP);
  std::this_thread::sleep_for(3s);
  for (const auto& rank : run.ranks) rank->send(SIGCONT);
  std::this_thread::sleep_for(500ms);
  for (const auto& rank : run.ranks) EXPECT_EQ(rank->end(20ms), 1000) << rank->text();
}

/// Ranks 0 and 1 of three, after a while in which the third has not come.
struct TwoOfThree {
  ReservedPort port;
  RankProcess zero{[this] { return train(test_place(0, 3, port.number()), {}); }};
  RankProcess one{[this] { return train(test_place(1, 3, port.number()), {}); }};
  TwoOfThree() { std::this_thread::sleep_for(1500ms); }
};

TEST(Monitor, ARankThatDiesWhileOthersAreMissingIsNamedAtOnce) {
  TwoOfThree ranks;
  ranks.one.send(SIGKILL);
  EXPECT_EQ(ranks.zero.end(), static_cast<int>(ExitCode::kTerminated));
  EXPECT_SAYS(ranks.zero, "[parallel] rank 1 (");
  EXPECT_SAYS(ranks.zero, "meeting the other ranks");
  EXPECT_SAYS(ranks.zero, "has died: its connection to rank 0 closed, while rank 2 had not come yet");
}

TEST(Monitor, RankZeroThatDiesWhileOthersAreMissingIsNamedAtOnce) {
  TwoOfThree ranks;
  ranks.zero.send(SIGKILL);
  EXPECT_EQ(ranks.one.end(), static_cast<int>(ExitCode::kTerminated));
  EXPECT_SAYS(ranks.one, "[parallel] rank 0 (");
  EXPECT_SAYS(ranks.one, "has died: its connection closed");
}

TEST(Monitor, AMainThreadThatDoesNotLeaveABrokenWorldIsEnded) {
  MeetOptions options = quick();
  options.end_s = 0.5;
  const Gate others_have_met;
  World run(3, [&](const RankInfo& place) {
    const auto peers = rendezvous(place, options);
    std::fputs("met\n", stderr);
    if (place.rank == 1) {
      others_have_met.wait();
      const Error error("[data] shard.00003.mds is damaged", ExitCode::kUnusable);
      peers->abort(error);
      throw error;
    }
    const InPhase phase("in callback forever");
    std::this_thread::sleep_for(1h);
    return 0;
  });
  run.expect_met();
  others_have_met.open(1);
  for (const int r : {0, 2}) {
    EXPECT_EQ(run[r].end(), static_cast<int>(ExitCode::kUnusable));
    EXPECT_SAYS(
        run[r],
        fmt::format("[ranks] rank {} did not end within 0.5 s after the run broke (in callback forever", r));
    EXPECT_SAYS(
        run[r],
        "it ends now with exit code 12. Why the run broke: [parallel] rank 1 ended the run: [data] shard");
  }
}

struct EndedRank {
  int code;
  std::string text;
};

/// What rank 0 of two says and ends with, when rank 1 has failed and rank 0 does `work` then.
EndedRank after_a_failure(const MeetOptions& options, const std::function<void()>& work) {
  const Gate both_connected;
  World run(2, [&](const RankInfo& place) -> int {
    const auto peers = rendezvous(place, options);
    peers->connect("both", {0, 1});
    std::fputs("met\n", stderr);
    const Error error("[data] shard.00003.mds is damaged", ExitCode::kUnusable);
    if (place.rank == 1) {
      both_connected.wait();
      throw peers->abort(error);
    }
    work();
    throw peers->why_broken("", {});
  });
  run.expect_met();
  both_connected.open(1);
  const int code = run[0].end();
  return {code, run[0].text()};
}

TEST(Monitor, AMainThreadThatSavesHasTheTimeToSave) {
  MeetOptions options = quick();
  options.end_s = 0.5;
  options.save_s = 60;
  const EndedRank zero = after_a_failure(options, [] {
    const InPhase phase("saving a checkpoint");
    std::this_thread::sleep_for(2s);
    std::fputs("saved\n", stderr);
  });
  EXPECT_EQ(zero.code, static_cast<int>(ExitCode::kUnusable));
  EXPECT_NE(zero.text.find("saved\n[parallel] rank 1 ended the run: "), std::string::npos) << zero.text;
}

TEST(Monitor, AMainThreadThatNeverFinishesItsSaveIsEnded) {
  MeetOptions options = quick();
  options.end_s = 0.2;
  options.save_s = 1;
  const EndedRank zero = after_a_failure(options, [] {
    const InPhase phase("saving a checkpoint");
    std::this_thread::sleep_for(1h);
  });
  EXPECT_EQ(zero.code, static_cast<int>(ExitCode::kUnusable));
  EXPECT_NE(zero.text.find(
                "[ranks] rank 0 did not finish its save within 1 s after the run broke (saving a checkpoint"),
            std::string::npos)
      << zero.text;
}

TEST(Monitor, AMainThreadThatIsStuckAfterItsSaveIsEnded) {
  MeetOptions options = quick();
  options.end_s = 0.4;
  options.save_s = 60;
  const EndedRank zero = after_a_failure(options, [] {
    {
      const InPhase phase("saving a checkpoint");
      std::this_thread::sleep_for(1s);
    }
    const InPhase phase("in callback forever");
    std::this_thread::sleep_for(1h);
  });
  EXPECT_EQ(zero.code, static_cast<int>(ExitCode::kUnusable));
  EXPECT_NE(zero.text.find("[ranks] rank 0 did not end within 0.4 s after its save (in callback forever"),
            std::string::npos)
      << zero.text;
}

TEST(Monitor, AProcessWithAPromptIsNotEnded) {
  MeetOptions options = quick();
  options.end_s = 0.3;
  const Gate both_have_met;
  World run(2, [&](const RankInfo& place) {
    const auto peers = rendezvous(place, options);
    process_progress().set_prompt();
    std::fputs("met\n", stderr);
    both_have_met.wait();
    if (place.rank == 1) return 0;
    peers->abort(Error("an entry failed"));
    std::this_thread::sleep_for(2s);
    std::fputs("still here\n", stderr);
    return 0;
  });
  run.expect_met();
  both_have_met.open(2);
  EXPECT_EQ(run[0].end(), 0);
  EXPECT_SAYS(run[0], "still here");
}

}  // namespace
}  // namespace tycho
