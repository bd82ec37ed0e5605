// Whole runs with callbacks: what commands change, and that a resumed run changes the same.
#include <gtest/gtest.h>

#include "tests/trainer/run/callbacks_run_fixture.h"
#include "trainer/base/field_types.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/rendezvous/progress.h"

namespace tycho {
namespace {

TEST_F(CallbacksRunTest, EventsComeInTheOrderThatIsDrawn) {
  write_data(12, config_.seq_len, 64);  // three steps an epoch
  config_.max_duration = {4, DurationUnit::kBatch};
  std::string order_of_events;
  std::set<Event> all;
  for (const auto& [name, event] : enum_names(Event{}))
    if (event != Event::kCkptSaved) all.insert(event);
  control([&](const EventInfo& info, CallbackPort&,
              Json&) { order_of_events += std::string(enum_name(info.event)) + " "; },
          all);
  EXPECT_EQ(run(), 0);
  const std::string step = "batch_start after_forward grads_ready batch_end ";
  EXPECT_EQ(order_of_events, "setup load fit_start epoch_start " + step + step + step +
                                 "epoch_end epoch_start " + step + "fit_end ");
}

// Steps are far shorter than saves, so that each save begins while the one before is still being written.
TEST_F(CallbacksRunTest, EveryCheckpointIsAnnouncedOnceAndInOrder) {
  config_.max_duration = {12, DurationUnit::kBatch};
  config_.ckpt.every = {1, DurationUnit::kBatch};
  std::vector<std::string> saved;
  control(
      [&](const EventInfo& info, CallbackPort& port, Json&) {
        if (info.event == Event::kCkptSaved)
          saved.push_back(fmt::format("{}{}", info.facts.at("saved_step").get<int64_t>(),
                                      info.facts.at("tag").get<std::string>()));
        else if (info.metrics.step == 5)  // two names, which are two checkpoints of one step
          order(port, "save", Json::array({"a"})), order(port, "save", Json::array({"b"}));
      },
      {Event::kBatchEnd, Event::kCkptSaved});
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(saved,
            (std::vector<std::string>{"1", "2", "3", "4", "5a", "5b", "6", "7", "8", "9", "10", "11", "12"}));
}

// What other ranks are told when this one does not come.
TEST_F(CallbacksRunTest, TheProcessSaysWhatItIsDoing) {
  config_.max_duration = {3, DurationUnit::kBatch};
  std::vector<std::string> told;
  control([&](const EventInfo&, CallbackPort&,
              Json&) { told.push_back(progress_text(process_progress().report())); },
          {Event::kBatchStart, Event::kBatchEnd});
  run();
  EXPECT_EQ(told, (std::vector<std::string>{"step 0, in callback x", "step 1, in callback x",
                                            "step 1, in callback x", "step 2, in callback x",
                                            "step 2, in callback x", "step 3, in callback x"}));
  EXPECT_EQ(process_progress().report().step, 3);
}

TEST_F(CallbacksRunTest, CommandsActFromTheNextStepOn) {
  config_.scheduler.value = ConstantConfig();
  control([](const EventInfo& info, CallbackPort& port, Json&) {
    if (info.metrics.step == 2) order(port, "scale_lr", Json::array({0.5}), {{"for_next", "3ba"}});
    if (info.metrics.step == 7) order(port, "set_lr", Json::array({0.125}));
    if (info.metrics.step == 9) order(port, "set_lr", Json::array({nullptr}));
    if (info.metrics.step == 10)
      order(port, "set_schedule", Json::array({Json{{"kind", "constant"}, {"alpha", 0.25}}}));
  });
  EXPECT_EQ(run(), 0);
  const std::map<int64_t, double> lr = values("lr");
  EXPECT_DOUBLE_EQ(lr.at(2), 1e-2);
  for (const int64_t step : {3, 4, 5}) EXPECT_DOUBLE_EQ(lr.at(step), 0.5e-2) << step;
  EXPECT_DOUBLE_EQ(lr.at(6), 1e-2);
  EXPECT_DOUBLE_EQ(lr.at(8), 0.125);
  EXPECT_DOUBLE_EQ(lr.at(10), 1e-2);
  EXPECT_DOUBLE_EQ(lr.at(11), 0.25e-2);
  EXPECT_EQ(texts("command").front(), "scale_lr(0.5, for_next = 3ba) by x");
}

TEST_F(CallbacksRunTest, AResumedRunHasTheSameWindowsStatesAndBitsAsOneThatNeverStopped) {
  const auto body = [this](int64_t stop_at) {
    return [=, this](const EventInfo& info, CallbackPort& port, Json& state) {
      state["sum"] = state.value("sum", 0.0) + info.metrics.loss;
      if (info.metrics.step == 3) order(port, "scale_lr", Json::array({0.5}), {{"for_next", "6ba"}});
      if (info.metrics.step == 4) order(port, "set_betas", Json::array({Json::array({0.8, 0.9})}));
      if (info.metrics.step == 4) order(port, "set_optimizer", Json::array({"eps", 1e-3}));
      if (info.metrics.step == 5) order(port, "skip_batches", Json::array({2}));
      if (info.metrics.step == 6) order(port, "set_clip", Json::array({state.at("sum").get<double>() / 10}));
      if (info.metrics.step == 8) order(port, "set_lr", Json::array({state.at("sum").get<double>() / 1e4}));
      if (info.metrics.step == stop_at) stop_ = 15;
    };
  };
  control(body(-1));
  EXPECT_EQ(run(), 0);
  const auto undisturbed = newest_tensors();
  const auto losses_undisturbed = losses();
  config_.run_dir = dir_ / "other";
  for (const int64_t stop_at : {5, 7}) {
    control(body(stop_at));
    EXPECT_EQ(run(), 143);
    stop_ = 0;
  }
  control(body(-1));
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(losses(), losses_undisturbed);
  EXPECT_TRUE(newest_tensors() == undisturbed);
}

TEST_F(CallbacksRunTest, AMixHoldsFromTheNextStepOnAndAcrossAResume) {
  write_data(40, config_.seq_len, 8, "low");
  write_data(40, config_.seq_len, 64, "high");
  auto& data = std::get<MdsConfig>(config_.train_data.value);
  data.streams = {{.name = "low", .local_dir = data.local_dir, .split = "low", .proportion = 1},
                  {.name = "high", .local_dir = data.local_dir, .split = "high", .proportion = 1}};
  data.local_dir.clear();
  const auto body = [this](int64_t stop_at) {
    return [=, this](const EventInfo& info, CallbackPort& port, Json&) {
      if (info.metrics.step == 2) order(port, "set_mix", Json::array({Json{{"low", 2}}}));
      if (info.metrics.step == 3) order(port, "set_mix", Json::array({Json{{"low", 1.0}}}));
      if (info.metrics.step == 9) order(port, "set_mix", Json::array({nullptr}));
      if (info.metrics.step == stop_at) stop_ = 15;
    };
  };
  control(body(-1));
  EXPECT_EQ(run(), 0);
  const auto undisturbed = losses();
  const auto tensors = newest_tensors();
  EXPECT_NE(texts("warning").back().find("was rejected: [data] the proportions given add up to 2"),
            std::string::npos);
  EXPECT_EQ(texts("command").front(), "set_mix({\"low\":1.0}) by x");
  const std::map<int64_t, double> epochs = values("epoch");
  EXPECT_EQ(epochs.at(3), 0);
  EXPECT_EQ(epochs.at(5), 1) << "a mix begins an epoch";
  EXPECT_EQ(epochs.at(11), 2);
  config_.run_dir = dir_ / "other";
  for (const int64_t stop_at : {3, 6, 9}) {
    control(body(stop_at));
    EXPECT_EQ(run(), 143);
    stop_ = 0;
  }
  control(body(-1));
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(losses(), undisturbed);
  EXPECT_TRUE(newest_tensors() == tensors);
}

TEST_F(CallbacksRunTest, StagesOfDataBeginWithTheirStepAlsoAfterAResume) {
  write_data(40, config_.seq_len, 8, "low");
  DataStageConfig stage{.name = "anneal", .start = {5, DurationUnit::kBatch}, .data = config_.train_data};
  std::get<MdsConfig>(stage.data.value).split = "low";
  config_.data_stages = {stage};
  stage.name = "end";
  stage.start = {static_cast<double>(9 * 4 * config_.seq_len), DurationUnit::kToken};
  stage.data = config_.train_data;
  config_.data_stages.push_back(stage);
  const auto stopping = [this](int64_t stop_at) {
    return [=, this](const EventInfo& info, CallbackPort&, Json&) {
      if (info.metrics.step == stop_at) stop_ = 15;
    };
  };
  control(stopping(-1));
  EXPECT_EQ(run(), 0);
  const auto undisturbed = losses();
  const auto tensors = newest_tensors();
  EXPECT_EQ(texts("data"), (std::vector<std::string>{"data stage anneal begins with step 6",
                                                     "data stage end begins with step 10"}));
  config_.run_dir = dir_ / "other";
  for (const int64_t stop_at : {4, 5, 6, 9}) {
    control(stopping(stop_at));
    EXPECT_EQ(run(), 143);
    stop_ = 0;
  }
  control(stopping(-1));
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(losses(), undisturbed);
  EXPECT_TRUE(newest_tensors() == tensors);
}

TEST_F(CallbacksRunTest, AnEvaluationThatAStopPreventedIsMadeWhenTheRunResumes) {
  write_data(16, config_.seq_len, 64, "val");
  MdsConfig val;
  val.local_dir = dir_ / "data", val.split = "val";
  config_.eval_data["val"].value = val;
  config_.eval_data["again"].value = val;
  config_.eval.every = Duration{4, DurationUnit::kBatch};
  std::vector<int64_t> evaluated;
  const auto body = [&](int64_t stop_at) {
    return [&, stop_at](const EventInfo& info, CallbackPort&, Json&) {
      if (info.event == Event::kEvalEnd) evaluated.push_back(info.eval->total->last.step);
      if (info.event == Event::kBatchEnd && info.metrics.step == stop_at) stop_ = 15;
      if (info.event == Event::kEvalStart && info.metrics.step == -stop_at) stop_ = 15;
    };
  };
  const std::set<Event> events = {Event::kEvalStart, Event::kEvalEnd, Event::kBatchEnd};
  control(body(4), events);
  EXPECT_EQ(run(), 143);
  EXPECT_TRUE(evaluated.empty());
  stop_ = 0;
  control(body(-8), events);  // while it is evaluated
  EXPECT_EQ(run(), 143);
  EXPECT_EQ(evaluated, std::vector<int64_t>{4});
  stop_ = 0;
  control(body(100), events);
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(evaluated, (std::vector<int64_t>{4, 8, 12}));
  const auto saved = [this] { return find_checkpoint(run_dir()).manifest.at("train_state").at("eval"); };
  const Json stopped = saved();
  config_.run_dir = dir_ / "undisturbed";
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(saved(), stopped);
}

TEST_F(CallbacksRunTest, StopEndsTheRunWithACheckpointAndItsReason) {
  control([](const EventInfo& info, CallbackPort& port, Json&) {
    if (info.metrics.step == 3) order(port, "stop", Json::array({"enough"}));
  });
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(find_checkpoint(run_dir()).step, 3);
  EXPECT_EQ(texts("run_end").back(),
            "stopped by x: enough after step 3, saved; the same command resumes from there");
}

TEST_F(CallbacksRunTest, TaggedCheckpointsOutliveTheNewest) {
  config_.ckpt.keep = 1;
  control([](const EventInfo& info, CallbackPort& port, Json&) {
    if (info.metrics.step == 2 || info.metrics.step == 6) order(port, "save", Json::array({"best"}));
  });
  EXPECT_EQ(run(), 0);
  std::vector<std::string> kept;
  for (const CheckpointInfo& info : list_checkpoints(run_dir() + "/checkpoints"))
    kept.push_back(std::to_string(info.step) + info.tag);
  EXPECT_EQ(kept, (std::vector<std::string>{"12", "6best"}));
}

TEST_F(CallbacksRunTest, WhatCannotBeDoneIsRefusedAndTrainingGoesOn) {
  config_.optimizer.value = SgdConfig{.lr = 1e-2};
  control([](const EventInfo& info, CallbackPort& port, Json&) {
    if (info.metrics.step == 2) order(port, "set_betas", Json::array({Json::array({0.8, 0.9})}));
  });
  EXPECT_EQ(run(), 0);
  EXPECT_NE(texts("warning").back().find("was rejected: [cmd.set_betas] sgd has no betas"),
            std::string::npos);
}

TEST_F(CallbacksRunTest, AProfileIsRecordedOnCommandAndOneAtATime) {
  control([](const EventInfo& info, CallbackPort& port, Json&) {
    if (info.metrics.step == 3 || info.metrics.step == 4) order(port, "profile", Json::array({"2ba"}));
  });
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(texts("profile").size(), 1u);
  EXPECT_NE(texts("profile").front().find("/profile/rank0.steps-4-5.pt.trace.json"), std::string::npos);
  EXPECT_NE(texts("warning").back().find("was rejected: [profile] a profile is already being recorded"),
            std::string::npos);
}

TEST_F(CallbacksRunTest, AFailureStopsTheRunWithACheckpoint) {
  control([](const EventInfo& info, CallbackPort&, Json&) {
    if (info.metrics.step == 3) throw Error("x.lua:7: oh", ExitCode::kRecipe);
  });
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kRecipe);
  EXPECT_NE(std::string(error.what()).find("rank 0, batch_end of \"x\": x.lua:7: oh"), std::string::npos);
  EXPECT_EQ(find_checkpoint(run_dir()).step, 3);
}

TEST_F(CallbacksRunTest, AnOptimizerMadeAnewKeepsItsState) {
  config_.max_duration = {6, DurationUnit::kBatch};
  EXPECT_EQ(run(), 0);
  const auto plain = newest_tensors();
  config_.run_dir = dir_ / "other";
  const auto& adamw = config_.optimizer.as<AdamWConfig>();
  const Json betas = Json::array({adamw.betas[0], adamw.betas[1]});
  control([betas](const EventInfo& info, CallbackPort& port, Json&) {
    if (info.metrics.step == 2) order(port, "set_betas", Json::array({betas}));
  });
  EXPECT_EQ(run(), 0);
  EXPECT_TRUE(newest_tensors() == plain);
}

// The last chance to say so.
TEST_F(CallbacksRunTest, ACallbackThatFailsAtTheLastCheckpointIsReported) {
  control([](const EventInfo&, CallbackPort&, Json&) { throw Error("x.lua:9: oh", ExitCode::kRecipe); },
          {Event::kCkptSaved});
  config_.ckpt.every = {1000, DurationUnit::kBatch};
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kRecipe);
  EXPECT_NE(std::string(error.what()).find("ckpt_saved of \"x\": x.lua:9: oh"), std::string::npos)
      << error.what();
  EXPECT_EQ(find_checkpoint(run_dir()).step, 12);
}

}  // namespace
}  // namespace tycho
