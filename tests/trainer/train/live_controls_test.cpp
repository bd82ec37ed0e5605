// Commands: each is applied, acts on its part of the loop, and changes nothing when it is refused.
#include "trainer/train/live_controls.h"

#include <set>

#include "tests/trainer/train/loop_fixture.h"

namespace tycho {
namespace {

class LiveControlsTest : public LoopTest {
 protected:
  LiveControlsTest() { write_data(24, config_.seq_len, 64); }

  /// The parts that commands act on.
  struct Ready {
    explicit Ready(LiveControlsTest& test)
        : reporter(test.reports_),
          small(test.config_, test.context_),
          data(test.config_, test.context_, 1),
          update(test.config_, test.context_, *small.units, 24),
          live(test.config_, 24, test.state_),
          hooks(test.config_, info, live.clock(), nullptr, *test.world_, 0, test.reports_),
          saver(std::nullopt, test.config_.ckpt, {0}, real_files(), *test.world_, test.reports_),
          profiler(test.config_.profile, {test.dir_ / "profile", 0, false}, test.reports_) {
      data.open(test.state_);
    }
    void apply(const std::string& name, const Json& values, const Json& named = Json()) {
      live.apply(make_command(name, values, named, "ann (ctl)"), targets());
    }
    CommandTargets targets() { return {data, update, hooks, saver, profiler, loss_watch, reporter, halt}; }
    Reporter& reporter;
    SmallModel small;
    RunInfo info;
    TrainingData data;
    WeightUpdate update;
    LiveControls live;
    Hooks hooks;
    Saver saver;
    Profiler profiler;
    LossWatch loss_watch{64};
    Halt halt;
  };
  /// The checkpoint of state_, written by a run of config_.
  CheckpointInfo checkpoint() const {
    CheckpointInfo info;
    info.step = state_.step;
    info.manifest = {{"recipe", config_to_json(config_)}, {"train_state", state_.to_json()}};
    return info;
  }

  TrainState state_;
};

TEST_F(LiveControlsTest, ApplyEveryCommandThatThereIs) {
  for (const CommandSpec& spec : all_commands()) EXPECT_TRUE(is_applied(spec)) << spec.name;
}

TEST_F(LiveControlsTest, RefuseACommandThatThereIsNot) {
  Ready ready(*this);
  try {
    ready.live.apply({"set_everything", Json::object(), "ann"}, ready.targets());
    FAIL() << "it fell through";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kRecipe);
    EXPECT_NE(std::string(error.what()).find("set_everything"), std::string::npos);
  }
}

TEST_F(LiveControlsTest, PinScaleAndReleaseTheLearningRate) {
  Ready ready(*this);
  const double scheduled = ready.live.scheduled_lr(3, 1);
  EXPECT_EQ(ready.live.lr_at(3, 1), scheduled);
  EXPECT_EQ(ready.live.lr_at(3, 0.5), scheduled * 0.5) << "of a dynamic schedule";
  ready.apply("scale_lr", {0.5}, {{"for_next", "4ba"}});
  EXPECT_EQ(ready.live.lr_at(3, 1), scheduled * 0.5);
  EXPECT_EQ(ready.live.lr_at(4, 1), ready.live.scheduled_lr(4, 1)) << "four steps are over";
  ready.apply("set_lr", {5e-3});
  EXPECT_EQ(ready.live.lr_at(3, 1), 5e-3);
  EXPECT_EQ(state_.controls.lr_by, "ann (ctl)");
  ready.apply("set_lr", Json::array({nullptr}));
  EXPECT_EQ(ready.live.lr_at(3, 1), scheduled * 0.5);
}

TEST_F(LiveControlsTest, ChangeTheRecipeThatTheNextStepUses) {
  Ready ready(*this);
  ready.apply("set_clip", {0.25});
  ready.apply("set_betas", Json::array({{0.5, 0.75}}));
  ready.apply("set_log_every", {"7ba"});
  EXPECT_EQ(ready.live.now().clip.norm, 0.25);
  EXPECT_EQ(std::get<AdamWConfig>(ready.live.now().optimizer.value).betas,
            (std::array<double, 2>{0.5, 0.75}));
  EXPECT_EQ(ready.update.rules().at(0).at(0).betas, (std::array<double, 2>{0.5, 0.75}));
  EXPECT_EQ(ready.live.now().log.every.str(), "7ba");
  ready.apply("set_clip", Json::array({nullptr}));
  EXPECT_EQ(ready.live.now().clip.norm, config_.clip.norm);
}

TEST_F(LiveControlsTest, SetNumbersOfTheOptimizerByTheirNames) {
  Ready ready(*this);
  const auto now = [&]() -> const AdamWConfig& { return ready.live.now().optimizer.as<AdamWConfig>(); };
  ready.apply("set_optimizer", Json::array({"eps", 1e-5}));
  EXPECT_EQ(now().eps, 1e-5);
  // set_optimizer acts as set_betas and set_lr for numbers that have a command of their own.
  ready.apply("set_optimizer", Json::array({"betas", {0.5, 0.75}}));
  ready.apply("set_optimizer", Json::array({"lr", 5e-3}));
  EXPECT_EQ(ready.update.rules().at(0).at(0).betas, (std::array<double, 2>{0.5, 0.75}));
  EXPECT_EQ(ready.live.lr_at(3, 1), 5e-3);
  EXPECT_EQ(state_.controls.betas, (std::array<double, 2>{0.5, 0.75}));
  for (const char* name : {"eps", "betas", "lr"}) ready.apply("set_optimizer", Json::array({name, nullptr}));
  EXPECT_EQ(now().eps, AdamWConfig().eps);
  EXPECT_EQ(state_.controls, Controls());
}

/// p - lr * alpha * g; the formula has `rounds` built in, and uses no `idle`.
DefinedOptimizerConfig own_optimizer() {
  DefinedOptimizerConfig own;
  own.defined = "own", own.lr = 0.1;
  own.values = {{"alpha", 0.5}, {"gammas", {0.5, 0.25}}, {"idle", 1}, {"nesterov", false}, {"rounds", 3}};
  own.number_limits = {{{"name", "alpha"}, {"min", 0}, {"max", 1}, {"max_exclusive", true}}};
  own.updates = Json::array();
  for (const bool hidden : {false, true})
    own.updates.push_back(parse_json(fmt::format(R"({{"hidden": {}, "states": [], "expression": {{
      "inputs": [{{"name": "p"}}, {{"name": "g"}}, {{"name": "h.lr", "scalar": true}}, {{"name": "h.alpha", "scalar": true}},
                 {{"name": "h.idle", "scalar": true}}, {{"name": "h.gammas.1", "scalar": true}}, {{"name": "h.gammas.2", "scalar": true}}],
      "nodes": [["input", 0], ["input", 1], ["input", 2], ["input", 3], ["mul", 2, 3], ["mul", 4, 1], ["sub", 0, 5],
                ["input", 5], ["mul", 6, 7], ["sub", 6, 8], ["add", 9, 8]],
      "outputs": [{{"name": "p", "node": 10}}]}}}})",
                                                 hidden),
                                     "test"));
  return own;
}

TEST_F(LiveControlsTest, SetNumbersOfAnOptimizerOfTheRecipe) {
  config_.optimizer.value = own_optimizer();
  Ready ready(*this);
  const auto values = [&] { return ready.live.now().optimizer.as<DefinedOptimizerConfig>().values; };
  ready.apply("set_optimizer", Json::array({"alpha", 0.25}));
  ready.apply("set_optimizer", Json::array({"gammas", {1, 2}}));
  EXPECT_EQ(values().at("alpha"), 0.25);
  EXPECT_EQ(values().at("gammas"), Json({1, 2}));
  ready.apply("set_optimizer", Json::array({"alpha", nullptr}));
  EXPECT_EQ(values().at("alpha"), 0.5);
  EXPECT_EQ(values().at("gammas"), Json({1, 2}));
}

TEST_F(LiveControlsTest, SayWhyANumberOfTheOptimizerCannotBeSet) {
  config_.optimizer.value = own_optimizer();
  const auto refusal = [&](const Json& values) -> std::string {
    Ready ready(*this);
    try {
      ready.apply("set_optimizer", values);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kRecipe);
      EXPECT_EQ(state_.controls, Controls());
      return error.what();
    }
    return "";
  };
  const auto says = [&](const Json& values, const std::string& what) {
    const std::string said = refusal(values);
    EXPECT_NE(said.find(what), std::string::npos) << said;
  };
  says({"alhpa", 0.3}, "own has no number \"alhpa\"; did you mean \"alpha\"?");
  says({"alhpa", nullptr}, "did you mean \"alpha\"?");
  says({"zzzzzz", 0.3}, "its numbers are alpha, gammas, idle, lr");
  says({"updates", 1}, "own has no number \"updates\"");
  says({"gammas.2", 1}, "expected the whole list, as in optimizer.gammas = [0.5,0.25]");
  says({"alpha", 2}, "optimizer.alpha: expected a number >= 0 and < 1, got 2");
  says({"alpha", "fast"}, "optimizer.alpha: expected a number, got \"fast\"");
  says({"alpha", {0.5, 0.5}}, "optimizer.alpha: expected a number, got [0.5,0.5]");
  says({"gammas", 1}, "optimizer.gammas: expected a list of 2 numbers such as [0.5,0.25], got 1");
  says({"gammas", {1, 2, 3}}, "expected a list of 2 numbers");
  says({"gammas", {1, "x"}}, "expected a list of 2 numbers");
  says(
      {"rounds", 4},
      "optimizer.rounds = 3 was read while the formulas of own were made, and is part of them: stop the run");
  says({"nesterov", true}, "optimizer.nesterov = false was read while the formulas of own were made");
  says({"idle", 2}, "no formula of own uses h.idle, so that another value would change nothing");
  says({"decay_mask", "all"}, "optimizer.decay_mask = \"matrices\" is no number");
  config_.optimizer.value = SgdConfig{.lr = 0.1};
  says({"momentum", 0.9}, "sgd would keep other state with this value: stop the run");
  says({"nesterov", true}, "optimizer.nesterov = false is no number");
  says({"eps", 1}, "sgd has no number \"eps\"");
  config_.optimizer.value = AdamWConfig{};
  says({"eps", -1}, "optimizer.eps: expected a number > 0, got -1");
}

TEST_F(LiveControlsTest, ActOnThePartsOfTheLoop) {
  Ready ready(*this);
  ready.apply("save", {"spike"});
  EXPECT_TRUE(ready.saver.has_requests());
  ready.apply("eval", Json::array());
  EXPECT_TRUE(state_.eval_open);
  ready.apply("skip_batches", {2});
  EXPECT_EQ(state_.data.sample, 8);
  EXPECT_EQ(ready.profiler.phase(), "off");
  ready.apply("profile", {"2ba"});
  EXPECT_NE(ready.profiler.phase(), "off");
  ready.apply("pause", Json::array());
  EXPECT_TRUE(ready.halt.paused);
  EXPECT_FALSE(ready.halt.stops());
  ready.apply("resume", Json::array());
  EXPECT_FALSE(ready.halt.paused);
  ready.apply("stop", {"it is flat"});
  EXPECT_EQ(ready.halt.reason, "stopped by ann (ctl): it is flat");
  EXPECT_TRUE(ready.halt.stops());
  EXPECT_EQ(state_.controls, Controls()) << "none of these outlasts its step";
}

TEST_F(LiveControlsTest, ChangeNothingWhenTheyAreRefused) {
  config_.clip = {};
  config_.clip.value = 1;
  Ready ready(*this);
  for (const auto& [name, values] : std::map<std::string, Json>{
           {"set_clip", {0.5}}, {"enable", {"nobody"}}, {"set_mix", Json::array({Json{{"code", 0.5}}})}}) {
    try {
      ready.apply(name, values);
      ADD_FAILURE() << name << " cannot hold here";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kRecipe) << error.what();
    }
  }
  EXPECT_EQ(state_.controls, Controls());
  EXPECT_EQ(state_.data.sample, 0);
}

TEST_F(LiveControlsTest, AreReportedAppliedOrRejectedInTheirOrder) {
  Ready ready(*this);
  const std::string by = "ann (ctl)";
  ready.live.apply_all(
      {make_command("set_lr", {5e-3}, Json(), by), make_command("enable", {"nobody"}, Json(), by),
       make_command("set_clip", {0.5}, Json(), by)},
      ready.targets());
  ASSERT_EQ(reports_.events.size(), 3u);
  EXPECT_EQ(reports_.events[0].text, "set_lr(0.005) by ann (ctl)");
  EXPECT_EQ(reports_.events[1].kind, "warning");
  EXPECT_NE(reports_.events[1].text.find("was rejected: "), std::string::npos);
  EXPECT_EQ(reports_.events[2].kind, "command") << "one that is rejected ends no other";
  EXPECT_EQ(state_.controls.clip_norm, 0.5);
}

TEST_F(LiveControlsTest, HoldAtASecondStartUnlessTheirKeyWasChanged) {
  state_.step = 4;
  state_.controls.lr = 5e-3;
  state_.controls.clip_norm = 0.25;
  const CheckpointInfo written = checkpoint();
  std::get<AdamWConfig>(config_.optimizer.value).lr = 2e-2;
  TrainState read = TrainState::from_json(written.manifest.at("train_state"));
  state_ = TrainState();
  Ready ready(*this);
  ready.live.resume(written, read, ready.update);
  EXPECT_FALSE(read.controls.lr) << "the recipe asks for another one now";
  EXPECT_EQ(read.controls.clip_norm, 0.25);
  EXPECT_EQ(ready.live.now().clip.norm, 0.25);
  ready.live.report_held(reports_);
  ready.live.report_held(reports_);
  ASSERT_EQ(reports_.events.size(), 2u) << "they are said once";
  EXPECT_EQ(reports_.events[0].facts.at(kEndedCommand), "set_lr");
  EXPECT_EQ(reports_.events[1].facts.at("held_command"), "set_clip");
}

TEST_F(LiveControlsTest, KnowWhenSomethingIsDue) {
  Ready ready(*this);
  state_.step = 4;
  EXPECT_TRUE(ready.live.is_due(Duration::parse("2ba")));
  EXPECT_FALSE(ready.live.is_due(Duration::parse("3ba")));
  EXPECT_TRUE(ready.live.is_due(Duration::parse("5ba"), /*ahead=*/1));
  EXPECT_FALSE(ready.live.is_due(std::nullopt));
  EXPECT_EQ(ready.live.steps_of(Duration::parse("8sp")), 2) << "four sequences make a step";
}

}  // namespace
}  // namespace tycho
