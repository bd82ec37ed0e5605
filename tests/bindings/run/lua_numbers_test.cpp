// Numbers that are not finite, and spikes of the loss, in the recipe's code: what is recorded, what is left
// out, what ends a run.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bindings/run/lua_callbacks.h"
#include "tests/bindings/run/lua_callbacks_fixture.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

TEST_F(LuaCallbacksTest, EvaluationsThatAreNotFiniteAreWorseThanEveryNumber) {
  EvalRecords records;
  eval_ = &records;
  int64_t step = 0;
  const auto after = [&](double loss) {
    const EvalScore score{loss, std::exp(loss), 100, ++step};
    if (!records.total) records.total = {score, score};
    records.total->last = score;
    if (!(loss >= records.total->best.loss)) records.total->best = score;
    commands_.clear();
    EXPECT_EQ(call(Event::kEvalEnd), "");
    return commands_.empty() ? "" : command_text(commands_[0]);
  };
  load(
      "r.eval_data = { a = t.data.mds { local_dir = 'd' } }\nr.callbacks.a = t.cb.early_stop { patience = 2 "
      "}");
  for (const double loss : std::vector<double>{NAN, 5, 4, INFINITY}) EXPECT_EQ(after(loss), "") << loss;
  EXPECT_EQ(after(NAN), "stop(\"none of the last 2 evaluations was better than 4\")");
  load(
      "r.eval_data = { a = t.data.mds { local_dir = 'd' } }\nr.callbacks.a = t.cb.early_stop { patience = 2 "
      "}");
  EXPECT_EQ(after(NAN), "");
  EXPECT_EQ(after(NAN), "stop(\"none of the last 2 evaluations was a finite number\")");
  records = {};
  load("r.eval_data = { a = t.data.mds { local_dir = 'd' } }\nr.callbacks.a = t.cb.checkpoint_best {}");
  EXPECT_EQ(after(NAN), "");
  records.total->best.loss = INFINITY;  // a number is better
  EXPECT_EQ(after(7), "save(\"best\")");
  load(
      "r.eval_data = { a = t.data.mds { local_dir = 'd' } }\nr.callbacks.a = t.cb.threshold_stop { below = 9 "
      "}");
  EXPECT_EQ(after(NAN), "");
}

TEST_F(LuaCallbacksTest, NumbersThatAreNotFiniteAreRecorded) {
  load(
      "r.callbacks.a = t.observe { batch_end = function(ctx) ctx.log:metric('ppl', math.huge)\n"
      "ctx.log:metric('low', -math.huge) ctx.log:metric('nan', 0 / 0) ctx.log:warn('bad', { x = 0 / 0 }) end "
      "}");
  EXPECT_EQ(call(), "");
  ASSERT_EQ(session_.metrics.size(), 3u);
  EXPECT_EQ(session_.metrics[0], (std::pair<std::string, double>("ppl", INFINITY)));
  EXPECT_EQ(session_.metrics[1].second, -INFINITY);
  EXPECT_TRUE(std::isnan(session_.metrics[2].second));
  EXPECT_TRUE(session_.events_.at(0).starts_with("warning: bad  x=nan")) << session_.events_.at(0);
  load("r.callbacks.a = t.observe { batch_end = function(ctx) ctx.log:metric('ppl', 'much') end }");
  EXPECT_NE(call().find("log:metric: value expects a number, got \"much\""), std::string::npos);
  load("r.callbacks.a = t.observe { batch_end = function(ctx) ctx.log:metric('not_finite', 1) end }");
  EXPECT_NE(call().find("every record already has not_finite"), std::string::npos);
}

// guard.action = "skip" goes on after a step whose loss is not finite.
TEST_F(LuaCallbacksTest, ReadyOnesWithAMemoryLeaveOutALossThatIsNotFiniteAndSaySoOnce) {
  for (const char* kind : {"loss_ema", "loss_spike", "kill_loss_spike"}) {
    SCOPED_TRACE(kind);
    std::vector<Json> states;
    for (const bool broken : {false, true}) {
      load(fmt::format("r.callbacks.a = t.cb.{} {{}}", kind));
      session_.events_.clear();
      for (int64_t step = 1; step <= 6; ++step) {
        const std::vector<double> losses = {3, NAN, 2.5, INFINITY, NAN, 2};
        metrics_.step = step, metrics_.loss = losses[static_cast<size_t>(step - 1)];
        if (!broken && !std::isfinite(metrics_.loss)) continue;
        EXPECT_EQ(call(), "") << step;
      }
      EXPECT_EQ(session_.events_.size(), broken ? 1u : 0u);
      states.push_back(callbacks_[0].code->state());
      states.back().erase("told");
    }
    EXPECT_EQ(states[0], states[1]);
    EXPECT_TRUE(session_.events_.at(0).starts_with(
        fmt::format("warning: {} leaves out losses that are not finite  loss=nan", kind)))
        << session_.events_.at(0);
  }
}

/// The text of the last block of Lua in docs/callbacks.md that begins so.
std::string lua_of_docs(const std::string& beginning) {
  const std::string page = read_file(TYCHO_SOURCE_DIR "/docs/callbacks.md");
  const size_t begin = page.find(beginning);
  EXPECT_NE(begin, std::string::npos) << beginning;
  return page.substr(begin, page.find("```", begin) - begin);
}

TEST_F(LuaCallbacksTest, WhatTheDocsTeachSurvivesALossThatIsNotFinite) {
  load(lua_of_docs("r.callbacks.spike = t.control"));
  for (const double loss : std::vector<double>{3, NAN, 2.5, INFINITY, 2}) {
    ++metrics_.step, metrics_.loss = loss;
    EXPECT_EQ(call(), "") << loss;
  }
  EXPECT_TRUE(callbacks_[0].code->state().at("mean").is_number());
  load(lua_of_docs("r.scheduler = t.sched.dynamic(\"plateau\""));
  const auto schedule = source_->schedule();
  int64_t step = 0;
  for (const double loss : std::vector<double>{3, NAN, 2, INFINITY})
    EXPECT_EQ(schedule->factor(step++, 10, loss), 1);
  EXPECT_EQ(schedule->factor(step++, 10, 3.5), 0.9);
  EXPECT_EQ(schedule->state().at("best"), 2);
}

TEST_F(LuaCallbacksTest, AScheduleThatFailsOrGivesNoShareSaysItsNameAndLineAndKeepsItsState) {
  const auto raised = [&](const std::string& body) {
    load("r.scheduler = t.sched.dynamic(\"mine\", function(s, state)\n  state.n = (state.n or 0) + 1\n  " +
         body + "\nend)");
    const auto schedule = source_->schedule();
    try {
      schedule->factor(59, 1000, 2.5);
      ADD_FAILURE() << body;
    } catch (const Error& error) {
      EXPECT_TRUE(schedule->state().empty()) << schedule->state();
      std::string text = error.what();
      const size_t at = text.find("x.lua:");  // behind the folder
      const size_t folder = text.find(dir_.path());
      if (folder != std::string::npos && folder < at) text.erase(folder, at - folder);
      return text;
    }
    return std::string();
  };
  const std::string wanted = " at step 59; expected a number >= 0, a share of the peak";
  EXPECT_EQ(raised("return 0 / 0"), "the schedule mine failed: x.lua:7: it returned nan" + wanted);
  EXPECT_EQ(raised("return -0.5"), "the schedule mine failed: x.lua:7: it returned -0.5" + wanted);
  EXPECT_EQ(raised("return math.huge"), "the schedule mine failed: x.lua:7: it returned inf" + wanted);
  EXPECT_EQ(raised(""), "the schedule mine failed: x.lua:7: it returned nil" + wanted);
  EXPECT_EQ(raised("return 'half'"), "the schedule mine failed: x.lua:7: it returned \"half\"" + wanted);
  EXPECT_EQ(raised("error 'oh'"), "the schedule mine failed: x.lua:9: oh");
  EXPECT_EQ(raised("return s.gone.x"),
            "the schedule mine failed: x.lua:9: attempt to index field 'gone' (a nil value); s has no gone; "
            "it has frac, "
            "loss, step, total");
  EXPECT_EQ(raised("state.f = print return 1"),
            "the schedule mine failed: x.lua:7: state must be plain data; this call left a function at f");
}

TEST_F(LuaCallbacksTest, NotifyAlertsOfTheFirstSpikeOf200Steps) {
  load("r.callbacks.a = t.cb.notify { url_env = \"HOOK\" }");
  for (int64_t step = 1; step <= 500; ++step) {
    metrics_.step = step;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    metrics_.loss = step == 50 || step == 150 || step == 160 ? 50
                    : step == 400                            ? nan
                                                             : 2 + 0.1 * static_cast<double>(step % 2);
    ASSERT_EQ(call(), "");
  }
  ASSERT_EQ(session_.events_.size(), 2u);
  EXPECT_TRUE(session_.events_[0].starts_with("alert: loss spike: loss 50 at step 150; its average is "))
      << session_.events_[0];
  EXPECT_TRUE(session_.events_[1].starts_with("alert: loss spike: loss nan at step 400"))
      << session_.events_[1];
}

// Results of llmfoundry/callbacks/kill_loss_spike_callback.py, worked out by hand: a window of 4 losses of 2,
// so that 4 and more are outliers.
TEST_F(LuaCallbacksTest, KillLossSpikeStopsAfterMoreOutliersInARowThanItsPatience) {
  const auto stops_at = [&](const std::vector<double>& losses) {
    load(
        "r.callbacks.a = t.cb.kill_loss_spike { action = 'stop', patience = 1, window = 4, loss_cap = 3.5 }");
    metrics_.step = 0;
    for (const double loss : losses) {
      ++metrics_.step, metrics_.loss = loss;
      commands_.clear();
      EXPECT_EQ(call(), "");
      if (!commands_.empty()) return metrics_.step;
    }
    return int64_t{0};
  };
  EXPECT_EQ(stops_at({2, 2, 2, 2, 4, 2, 2, 2, 5, 2, 2, 2, 2}), 0);  // single ones
  EXPECT_EQ(stops_at({2, 2, 2, 2, 4, 5}), 6);                       // the mean is 2, then 2.5
  EXPECT_EQ(
      command_text(commands_[0]),
      "stop(\"2 losses in a row were at least 2 times the mean of 4 steps, 2.5; a lower learning rate may "
      "help\")");
  EXPECT_EQ(stops_at({2, 2, 9, 9, 2, 2, 2}),
            0);  // before the window is full, and before two windows are done
  EXPECT_EQ(stops_at({2, 2, 2, 3, 3, 4, 4, 3, 2, 2}), 8);  // two of 3, 3, 4, 4 are above the cap
  EXPECT_NE(command_text(commands_[0]).find("2 of the last 4 losses were above 3.5"), std::string::npos);
}

TEST_F(LuaCallbacksTest, KillLossSpikeWarnsOnceWhileTheLossStaysHigh) {
  load("r.callbacks.a = t.cb.kill_loss_spike { patience = 0, window = 2, loss_cap = 100 }");
  for (const double loss : {1.0, 1.0, 9.0, 99.0, 1.0, 1.0, 1.0, 9.0}) {
    ++metrics_.step, metrics_.loss = loss;
    ASSERT_EQ(call(), "");
  }
  EXPECT_TRUE(commands_.empty());
  int num_warnings = 0;
  for (const std::string& event : session_.events_) num_warnings += event.starts_with("warning: ");
  EXPECT_EQ(num_warnings, 2);
}

TEST_F(LuaCallbacksTest, ASpikeLowersTheLearningRateOnceAndIsReported) {
  load("r.callbacks.a = t.cb.loss_spike { warmup = \"5ba\", action = \"scale_lr\", for_next = \"10ba\" }");
  for (int64_t step = 1; step <= 30; ++step) {
    metrics_.step = step;
    metrics_.loss = step == 20 || step == 22 ? 50 : 2 + 0.1 * static_cast<double>(step % 2);
    ASSERT_EQ(call(), "");
  }
  ASSERT_EQ(commands_.size(), 2u);
  EXPECT_EQ(command_text(commands_[0]), "scale_lr(0.5, for_next = 10ba)");
  EXPECT_EQ(command_text(commands_[1]), "save(\"spike\")");
}

}  // namespace
}  // namespace tycho
