// Checkpoints that cannot be written for a while: training goes on, says so, and ends when too much is at
// stake.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/trainer/run/one_callback.h"
#include "tests/trainer/run/run_fixture.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/run/open_session.h"
#include "trainer/session/train_to_end.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// What a person at the screen is told.
class Screen final : public Reporter {
 public:
  explicit Screen(std::vector<std::string>& warnings) : warnings_(warnings) {}
  void screen_warning(const std::string& text) override { warnings_.push_back(text); }

 private:
  std::vector<std::string>& warnings_;
};

/// A person who presses Ctrl-C on reading that the run waits.
class StopAtWait final : public Reporter {
 public:
  StopAtWait(std::atomic<int>& stop, std::chrono::steady_clock::time_point& stopped)
      : stop_(stop), stopped_(stopped) {}
  void screen_warning(const std::string& text) override {
    if (text.find("Waiting for room") == std::string::npos) return;
    stopped_ = std::chrono::steady_clock::now();
    stop_ = SIGINT;
  }

 private:
  std::atomic<int>& stop_;
  std::chrono::steady_clock::time_point& stopped_;
};

class SaveFailuresTest : public RunTest {
 protected:
  SaveFailuresTest() {
    write_data(64, config_.seq_len, 64);
    config_.max_duration = {12, DurationUnit::kBatch};
    config_.ckpt.every = {1, DurationUnit::kBatch};
    config_.ckpt.max_lost = {60, DurationUnit::kSecond};
    config_.log.every = {1, DurationUnit::kBatch};
  }

  /// A file where the folder of checkpoints belongs: no save can begin. It works for root, too.
  void break_disk() const {
    std::ofstream(run_dir() + "/moved") << "in the way";
    swap_with_moved();
  }
  void repair_disk() const {
    swap_with_moved();
    fs::remove(run_dir() + "/moved");
  }
  /// At once: a save that begins between two renames would make the folder anew.
  void swap_with_moved() const {
    ASSERT_EQ(::renameat2(AT_FDCWD, (run_dir() + "/checkpoints").c_str(), AT_FDCWD,
                          (run_dir() + "/moved").c_str(), RENAME_EXCHANGE),
              0)
        << std::strerror(errno);
  }
  void at_steps(std::map<int64_t, std::function<void()>> actions) {
    source_ = std::make_unique<OneCallback>(
        std::set{Event::kBatchEnd},
        [actions = std::move(actions)](const EventInfo& info, CallbackPort&, Json&) {
          const auto action = actions.find(info.metrics.step);
          if (action != actions.end()) action->second();
        });
    callbacks_ = source_.get();
  }
  int64_t newest_step() const {
    const std::vector<CheckpointInfo> all = list_checkpoints(run_dir() + "/checkpoints");
    return all.empty() ? 0 : all.front().step;
  }
  size_t num_failed_saves() const {
    size_t count = 0;
    for (const Json& event : lines("events.jsonl"))
      count += event.at("kind") == "error" &&
               std::string(event.at("text")).find("was not saved") != std::string::npos;
    return count;
  }

  std::unique_ptr<OneCallback> source_;
};

TEST_F(SaveFailuresTest, ManyFailedSavesDoNotEndTheRunAndTheNextOneThatWorksIsWhole) {
  for (const bool async : {false, true}) {
    config_.run_dir = dir_ / (async ? "async" : "sync");
    config_.ckpt.async = async;
    at_steps({{3, [&] { break_disk(); }}, {10, [&] { repair_disk(); }}});
    EXPECT_EQ(run(), 0);
    EXPECT_GE(num_failed_saves(), 5u) << "it ended with the third one before";
    EXPECT_EQ(newest_step(), 12);
    CheckpointReader(find_checkpoint(run_dir())).verify();
    EXPECT_EQ(losses().size(), 12u);
  }
}

TEST_F(SaveFailuresTest, EveryStepWarnsOnTheScreenAndNotInTheFiles) {
  config_.ckpt.async = false;
  at_steps({{3, [&] { break_disk(); }}, {10, [&] { repair_disk(); }}});
  std::vector<std::string> warnings;
  const auto session = open_session(request(), std::make_unique<Screen>(warnings), stop_);
  EXPECT_EQ(train_to_end(*session), 0);
  ASSERT_EQ(warnings.size(), 7u) << "steps 4 to 10";
  for (const char* part : {"no checkpoint could be written for ", "; next try after step ",
                           "; after 60 s the run ends: [checkpoint] step 3 was not saved"})
    EXPECT_NE(warnings[0].find(part), std::string::npos) << warnings[0];
  for (const Json& event : lines("events.jsonl"))
    EXPECT_EQ(std::string(event.at("text")).find("next try after"), std::string::npos) << event;
}

TEST_F(SaveFailuresTest, OneLineSaysWhatFailedWhenTheNextTryIsAndWhenTheRunEnds) {
  config_.ckpt.async = false;
  at_steps({{3, [&] { break_disk(); }}, {10, [&] { repair_disk(); }}});
  EXPECT_EQ(run(), 0);
  for (const Json& event : lines("events.jsonl")) {
    if (event.at("kind") != "error") continue;
    const std::string text = event.at("text");
    EXPECT_EQ(text.find("was not saved"), text.rfind("was not saved")) << text;
    for (const char* part : {"[checkpoint] step ", "the next try is in about ",
                             "the run ends when they fail for 60 s (ckpt.max_lost)"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST_F(SaveFailuresTest, ARunEndsWhenMoreThanItsLimitWouldBeLost) {
  config_.max_duration = {100'000, DurationUnit::kBatch};
  config_.ckpt.max_lost = {0.3, DurationUnit::kSecond};
  at_steps({{3, [&] { break_disk(); }}});
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kStorage);
  for (const char* part : {"ckpt.max_lost = 0.3 s", "the last try failed: [checkpoint] step",
                           "resumes from the newest checkpoint"})
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  repair_disk();
  EXPECT_GE(newest_step(), 1) << "what was committed is still there";
  double trained_s = 0;
  for (const Json& line : lines("metrics.jsonl"))
    if (line.value("step", 0) > 3) trained_s += line.value("step_s", 0.0);
  EXPECT_GT(trained_s, 0.2) << "not before the limit; the step that passed it may have left no record";
}

TEST_F(SaveFailuresTest, WithoutALimitTheFirstFailureEndsTheRun) {
  config_.ckpt.max_lost = {0, DurationUnit::kSecond};
  config_.ckpt.async = false;
  at_steps({{3, [&] { break_disk(); }}});
  EXPECT_EQ(run_error().code(), ExitCode::kStorage);
  EXPECT_EQ(losses().size(), 4u);
}

TEST_F(SaveFailuresTest, TheLastSaveIsTriedAgainUntilThereIsRoom) {
  config_.ckpt.max_lost = {20, DurationUnit::kSecond};  // tried again each second
  std::thread person;
  at_steps({{12, [&] {
               break_disk();
               person = std::thread([&] {
                 std::this_thread::sleep_for(std::chrono::milliseconds(700));
                 repair_disk();
               });
             }}});
  std::vector<std::string> warnings;
  {
    const auto session = open_session(request(), std::make_unique<Screen>(warnings), stop_);
    EXPECT_EQ(train_to_end(*session), 0);
  }
  person.join();
  EXPECT_EQ(newest_step(), 12);
  EXPECT_GE(num_failed_saves(), 1u);
  ASSERT_FALSE(warnings.empty());
  for (const char* part : {"step 12 is not saved. Waiting for room: next try in 1 s, the run ends in ",
                           "Ctrl-C ends it now: [checkpoint] step 1"})
    EXPECT_NE(warnings.back().find(part), std::string::npos) << warnings.back();
}

TEST_F(SaveFailuresTest, ASignalEndsTheWaitForRoomAtOnce) {
  config_.ckpt.async = false;
  config_.ckpt.max_lost = {1e6, DurationUnit::kSecond};  // each wait is 30 s
  at_steps({{12, [&] { break_disk(); }}});
  std::chrono::steady_clock::time_point stopped;
  const auto session = open_session(request(), std::make_unique<StopAtWait>(stop_, stopped), stop_);
  try {
    train_to_end(*session);
    FAIL() << "step 12 was saved";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kStorage);
    EXPECT_NE(std::string(error.what()).find("stopped before the last checkpoint could be written"),
              std::string::npos)
        << error.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - stopped, std::chrono::seconds(25)) << "it waited to the end";
  repair_disk();
  EXPECT_EQ(newest_step(), 11);
}

TEST_F(SaveFailuresTest, ARunThatIsToStopDoesNotWaitForRoom) {
  config_.ckpt.async = false;
  at_steps({{5, [&] {
               break_disk();
               stop_ = 15;
             }}});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run_error().code(), ExitCode::kStorage);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(40)) << "the limit is a minute";
  repair_disk();
  EXPECT_EQ(newest_step(), 4);
}

TEST_F(SaveFailuresTest, ASaveThatAPersonAsksForFailsAtOnce) {
  for (const bool async : {false, true}) {
    config_.run_dir = dir_ / (async ? "async" : "sync");
    config_.ckpt.async = async;
    config_.ckpt.every = {100, DurationUnit::kBatch};
    const auto session = open_session(request(), nullptr, stop_);
    session->step(1);
    session->save();
    session->step(1);
    break_disk();
    try {
      session->save();
      FAIL() << "nothing was saved";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kStorage);
    }
    repair_disk();
    EXPECT_EQ(session->save().step, 2);
  }
}

TEST_F(SaveFailuresTest, ANamedCheckpointThatFailedGetsItsNameLater) {
  config_.ckpt.every = {100, DurationUnit::kBatch};
  std::vector<std::string> tags;
  source_ = std::make_unique<OneCallback>(
      std::set{Event::kBatchEnd, Event::kCkptSaved}, [&](const EventInfo& info, CallbackPort& port, Json&) {
        if (info.event == Event::kCkptSaved) return tags.push_back(info.facts.at("tag"));
        if (info.metrics.step == 3) {
          fs::create_directories(run_dir() + "/checkpoints");
          break_disk();
          port.commands.push_back(make_command("save", Json::array({"mine"}), nullptr, ""));
        }
        if (info.metrics.step == 4) repair_disk();
      });
  callbacks_ = source_.get();
  EXPECT_EQ(run(), 0);
  // A retry before the last step is followed by that step's own checkpoint.
  EXPECT_EQ(std::count(tags.begin(), tags.end(), "mine"), 1);
  const std::vector<CheckpointInfo> all = list_checkpoints(run_dir() + "/checkpoints");
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const auto& info) { return info.tag == "mine"; }), 1);
}

}  // namespace
}  // namespace tycho
