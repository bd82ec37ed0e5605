// When callbacks run, what their failures do, and what comes of their commands.
#include "trainer/callbacks/runner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>

#include "tests/trainer/callbacks/fake_callback.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

struct NotedEvents : Reporter {
  void metric(int64_t step, const std::string& name, double value) override {
    noted.push_back(fmt::format("{} {} {}", step, name, value));
  }
  void event(const std::string& kind, const std::string& text, const Json& facts) override {
    noted.push_back(kind + ": " + text);
    last_facts = facts;
  }
  std::vector<std::string> noted;
  Json last_facts;
};

class RunnerTest : public testing::Test {
 protected:
  CallbackRunner make(std::vector<Callback> callbacks, int rank = 0, int local_rank = 0) {
    return CallbackRunner(
        std::move(callbacks),
        {.rank = rank,
         .local_rank = local_rank,
         .reporter = reporter_,
         .gather = [this](const std::string& mine) { return gather_(mine); },
         .in_steps =
             [](const Duration& d) { return d.unit == DurationUnit::kFraction ? 100 * d.value : d.value; }});
  }
  void end_step(CallbackRunner& runner, int64_t step, Event event = Event::kBatchEnd) {
    StepMetrics metrics;
    metrics.step = step;
    metrics.step_s = 0.1;
    runner.announce({event, metrics, run_});
  }
  std::vector<int64_t> steps_of(CallbackOptions options) {
    std::vector<int64_t> steps;
    std::vector<Callback> callbacks;
    callbacks.push_back(fake_callback(
        "x", {Event::kBatchEnd},
        [&](const EventInfo& info, CallbackPort&, Json&) { steps.push_back(info.metrics.step); }, options));
    CallbackRunner runner = make(std::move(callbacks));
    for (int64_t step = 1; step <= 12; ++step) end_step(runner, step);
    return steps;
  }
  std::vector<Command> boundary(CallbackRunner& runner, int64_t step) {
    failure_.clear();
    Agreement agreed = runner.boundary(step, {}, 0);
    failure_ = agreed.failure;
    signal_ = agreed.signal;
    return agreed.commands;
  }

  NotedEvents reporter_;
  RunInfo run_;
  std::string failure_;
  int signal_ = 0;
  std::function<std::vector<std::string>(const std::string&)> gather_ = [](const std::string& mine) {
    return std::vector<std::string>{mine};
  };
};

Duration ba(double steps) { return {steps, DurationUnit::kBatch}; }

TEST_F(RunnerTest, EventsWithinAStepCountTheStepThatRuns) {
  std::set<Event> all, called;
  for (const EventEntry& entry : kEvents) all.insert(entry.event);
  std::vector<Callback> callbacks;
  callbacks.push_back(
      fake_callback("x", all, [&](const EventInfo& info, CallbackPort&, Json&) { called.insert(info.event); },
                    {.from = Duration{4, DurationUnit::kBatch}}));
  CallbackRunner runner = make(std::move(callbacks));
  for (const Event event : all) end_step(runner, 3, event);
  EXPECT_EQ(called, (std::set<Event>{Event::kBatchStart, Event::kAfterForward, Event::kGradsReady}));
}

TEST_F(RunnerTest, RunsEveryStepUnlessToldOtherwise) {
  EXPECT_EQ(steps_of({}).size(), 12u);
  EXPECT_EQ(steps_of({.every = ba(5)}), (std::vector<int64_t>{5, 10}));
  EXPECT_EQ(steps_of({.at = {ba(3), ba(7)}}), (std::vector<int64_t>{3, 7}));
  EXPECT_EQ(steps_of({.every = ba(5), .at = {ba(3)}}), (std::vector<int64_t>{3, 5, 10}));
  EXPECT_EQ(steps_of({.every = ba(2), .from = ba(5), .until_ = ba(9)}), (std::vector<int64_t>{6, 8}));
  EXPECT_EQ(steps_of({.every = Duration{0.04, DurationUnit::kFraction}}), (std::vector<int64_t>{4, 8, 12}));
}

TEST_F(RunnerTest, RunsByOrderThenByName) {
  std::string order;
  const auto say = [&](const char* name, int64_t rank) {
    return fake_callback(name, {Event::kBatchEnd},
                         [&order, name](const EventInfo&, CallbackPort&, Json&) { order += name; },
                         {.order = rank});
  };
  std::vector<Callback> callbacks;
  callbacks.push_back(say("c", 0));
  callbacks.push_back(say("a", 1));
  callbacks.push_back(say("b", 0));
  CallbackRunner runner = make(std::move(callbacks));
  end_step(runner, 1);
  EXPECT_EQ(order, "bca");
}

TEST_F(RunnerTest, CommandsWaitForTheBoundaryAndCarryTheirName) {
  std::vector<Callback> callbacks;
  callbacks.push_back(fake_callback("x", {Event::kBatchEnd}, [](const EventInfo&, CallbackPort& port, Json&) {
    port.commands.push_back(make_command("set_lr", Json::array({0.5}), nullptr, ""));
  }));
  CallbackRunner runner = make(std::move(callbacks));
  end_step(runner, 1);
  const std::vector<Command> commands = boundary(runner, 1);
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_EQ(command_text(commands[0]), "set_lr(0.5)");
  EXPECT_EQ(commands[0].by, "x");
  EXPECT_TRUE(boundary(runner, 1).empty());
}

std::vector<Callback> failing(std::optional<OnError> policy) {
  std::vector<Callback> callbacks;
  callbacks.push_back(fake_callback(
      "x", {Event::kBatchEnd},
      [](const EventInfo&, CallbackPort& port, Json& state) {
        state["touched"] = true;
        port.commands.push_back(make_command("stop", Json::array(), nullptr, ""));
        throw Error("x.lua:3: oh", ExitCode::kRecipe);
      },
      {.on_error = policy}, Json::object()));
  return callbacks;
}

TEST_F(RunnerTest, AFailedCallHasNoEffect) {
  CallbackRunner runner = make(failing(OnError::kWarn));
  end_step(runner, 1);
  EXPECT_TRUE(boundary(runner, 1).empty());
  EXPECT_EQ(runner.state(), Json({{"x", Json::object()}}));
  EXPECT_EQ(reporter_.noted.back(), "warning: rank 0, batch_end of \"x\": x.lua:3: oh");
}

TEST_F(RunnerTest, AnErrorStopsInTheFirstStepsAndDisablesLater) {
  CallbackRunner early = make(failing(std::nullopt));
  end_step(early, 100);
  boundary(early, 100);
  EXPECT_EQ(failure_, "rank 0, batch_end of \"x\": x.lua:3: oh");

  CallbackRunner late = make(failing(std::nullopt));
  end_step(late, 101);
  boundary(late, 101);
  EXPECT_EQ(failure_, "");
  EXPECT_EQ(late.switched().at("x"), false);
  EXPECT_FALSE(late.wants(Event::kBatchEnd, 102));
  late.enable("x", true);
  EXPECT_TRUE(late.wants(Event::kBatchEnd, 102));
}

TEST_F(RunnerTest, FailuresOfOneRankReachAllAndOnlyRankZeroCommands) {
  const std::string theirs =
      R"({"failures":[{"callback":"x","event":"setup","message":"x.lua:9: rank one"}],)"
      R"("commands":[{"name":"stop","arguments":{},"by":"x"}],"records":[],"signal":15})";
  gather_ = [&](const std::string& mine) { return std::vector<std::string>{mine, theirs}; };
  CallbackRunner runner = make(failing(OnError::kStop));
  EXPECT_TRUE(boundary(runner, 1).empty());
  EXPECT_EQ(failure_, "rank 1, setup of \"x\": x.lua:9: rank one");
  EXPECT_EQ(signal_, 15);
}

TEST_F(RunnerTest, TheErrorOfARankComesBeforeItsConsequencesOnOthers) {
  struct ToldDist final : Dist {
    int rank() const override { return 0; }
    int size() const override { return 2; }
    void enter() override {}
    void leave(bool) override {}
    bool told_of_failure() const override { return true; }
    std::vector<std::vector<double>> gather(const std::vector<double>&, const std::string&) override {
      throw Error("[dist] rank 1 failed in this callback", ExitCode::kTopology);
    }
  } dist;
  std::vector<Callback> callbacks;
  callbacks.push_back(fake_callback(
      "x", {Event::kBatchEnd}, [](const EventInfo&, CallbackPort& port, Json&) { port.dist->gather({}, ""); },
      {.on_error = OnError::kStop}, nullptr, CallbackKind::kEverywhere));
  std::string theirs =
      R"({"failures":[{"callback":"x","event":"batch_end","message":"x.lua:9: boom","echo":false}],)"
      R"("commands":[],"records":[],"signal":0})";
  gather_ = [&](const std::string& mine) { return std::vector<std::string>{mine, theirs}; };
  CallbackRunner runner(std::move(callbacks),
                        {.reporter = reporter_,
                         .gather = [this](const std::string& mine) { return gather_(mine); },
                         .dist = &dist,
                         .in_steps = [](const Duration& d) { return d.value; }});
  end_step(runner, 1);
  boundary(runner, 1);
  EXPECT_EQ(failure_, "rank 1, batch_end of \"x\": x.lua:9: boom");

  theirs.clear();  // that rank was interrupted, and says nothing
  end_step(runner, 2);
  boundary(runner, 2);
  EXPECT_EQ(failure_, "rank 0, batch_end of \"x\": [dist] rank 1 failed in this callback");
}

TEST_F(RunnerTest, OtherRanksRunOnlyEverywhereCallbacks) {
  int calls = 0;
  const auto count = [&](const EventInfo&, CallbackPort&, Json&) { ++calls; };
  std::vector<Callback> callbacks;
  callbacks.push_back(fake_callback("control", {Event::kBatchEnd}, count));
  callbacks.push_back(
      fake_callback("all", {Event::kBatchEnd}, count, {}, nullptr, CallbackKind::kEverywhere));
  CallbackRunner runner = make(std::move(callbacks), /*rank=*/1);
  end_step(runner, 1);
  EXPECT_EQ(calls, 1);
  runner.enable("control", false);  // known by name all the same
}

TEST_F(RunnerTest, AnObserverOfLocalZeroRunsOnceOnEachMachine) {
  const auto calls_on = [&](int rank, int local_rank, CallbackKind kind, ObserveRanks ranks) {
    int calls = 0;
    std::vector<Callback> callbacks;
    callbacks.push_back(fake_callback(
        "x", {Event::kBatchEnd}, [&](const EventInfo&, CallbackPort&, Json&) { ++calls; }, {}, nullptr,
        kind));
    callbacks.back().ranks = ranks;
    CallbackRunner runner = make(std::move(callbacks), rank, local_rank);
    end_step(runner, 1);
    return calls;
  };
  const auto local_zero = ObserveRanks::kLocalZero;
  EXPECT_EQ(calls_on(0, 0, CallbackKind::kObserve, local_zero), 1);
  EXPECT_EQ(calls_on(1, 1, CallbackKind::kObserve, local_zero), 0);
  EXPECT_EQ(calls_on(8, 0, CallbackKind::kObserve, local_zero), 1);
  EXPECT_EQ(calls_on(8, 0, CallbackKind::kObserve, ObserveRanks::kZero), 0);
}

TEST_F(RunnerTest, WhatOtherRanksRecordIsReportedWithTheirNumber) {
  std::string theirs;
  gather_ = [&](const std::string& mine) { return std::vector<std::string>{"", theirs = mine}; };
  CallbackRunner other = make({}, /*rank=*/1);
  other.record_metric(7, "disk", 0.5);
  other.record_metric(7, "ppl", INFINITY);
  other.record_event("warning", "full", {{"step", 7}});
  boundary(other, 7);
  reporter_.noted.clear();
  gather_ = [&](const std::string& mine) { return std::vector<std::string>{mine, theirs}; };
  CallbackRunner zero = make({});
  boundary(zero, 7);
  EXPECT_EQ(reporter_.noted,
            (std::vector<std::string>{"7 disk.rank_1 0.5", "7 ppl.rank_1 inf", "warning: rank 1: full"}));
  EXPECT_EQ(reporter_.last_facts.at("rank"), 1);
  gather_ = [&](const std::string& mine) { return std::vector<std::string>{"", theirs = mine}; };
  boundary(other, 8);
  EXPECT_EQ(theirs, "") << "it is said once";
}

TEST_F(RunnerTest, NamesThatDoNotExistAreRefusedWithASuggestion) {
  CallbackRunner runner = make(failing(OnError::kWarn));
  EXPECT_THROW(runner.enable("spike", true), Error);
}

TEST_F(RunnerTest, StateComesBackWithWhatWasSwitchedOff) {
  CallbackRunner runner = make(failing(OnError::kWarn));
  runner.set_state({{"x", {{"mean", 2.5}}}, {"gone", {{"a", 1}}}}, {{"x", false}, {"gone", false}});
  EXPECT_EQ(runner.state(), Json({{"x", {{"mean", 2.5}}}}));
  EXPECT_EQ(runner.switched(), (std::map<std::string, bool>{{"x", false}}));
}

TEST_F(RunnerTest, ReportsTheTimeOfEachCallback) {
  std::vector<Callback> callbacks;
  callbacks.push_back(fake_callback("x", {Event::kBatchEnd}, [](const EventInfo&, CallbackPort&, Json&) {}));
  CallbackRunner runner = make(std::move(callbacks));
  for (int64_t step = 1; step <= 3; ++step) end_step(runner, step);
  runner.report_costs(1);
  EXPECT_EQ(reporter_.last_facts.at("x").at("calls"), 3);
  EXPECT_TRUE(reporter_.noted.back().starts_with("callbacks: 1 callback took"));
  runner.report_costs(1e-9);
  EXPECT_EQ(reporter_.noted.back().find("e+"), std::string::npos) << reporter_.noted.back();
}

TEST_F(RunnerTest, TimeAtAPromptIsNotTheCallbacks) {
  std::vector<Callback> callbacks;
  callbacks.push_back(fake_callback("x", {Event::kBatchEnd}, [](const EventInfo&, CallbackPort& port, Json&) {
    const auto start = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    port.waited_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }));
  CallbackRunner runner = make(std::move(callbacks));
  end_step(runner, 1);
  for (const std::string& noted : reporter_.noted)
    EXPECT_EQ(noted.find(" took "), std::string::npos) << noted;
  runner.report_costs(1);
  EXPECT_LT(reporter_.last_facts.at("x").at("seconds"), 0.2);
  EXPECT_GE(reporter_.last_facts.at("x").at("seconds"), 0);
}

}  // namespace
}  // namespace tycho
