// Which keys are said to do nothing, and what each then needs.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "trainer/recipe/config_rules.h"
#include "trainer/recipe/train_config.h"

namespace tycho {
namespace {

/// What is said to do nothing. The config is otherwise that of a run that trains.
std::vector<ConfigProblem> idle_problems(const TrainConfig& config) {
  std::vector<ConfigProblem> idle;
  for (ConfigProblem& problem : check_config(config))
    if (problem.message.starts_with("has no effect ")) idle.push_back(std::move(problem));
  return idle;
}

using Change = std::function<void(TrainConfig&)>;

/// "path: message" of what is idle after the changes, one per line.
std::string idle_after(
    const Change& change, const Change& more = [](TrainConfig&) {}) {
  TrainConfig config;
  change(config);
  more(config);
  std::string text;
  for (const ConfigProblem& problem : idle_problems(config))
    text += (text.empty() ? "" : "\n") + problem.path + ": " + problem.message;
  return text;
}

TEST(IdleKeys, DefaultsAreNot) {
  EXPECT_EQ(idle_after([](TrainConfig&) {}), "");
}

TEST(IdleKeys, AProfileNeedsActive) {
  const Change wait = [](TrainConfig& c) { c.profile.wait.value = 3; };
  EXPECT_EQ(idle_after(wait),
            "profile.wait: has no effect without profile.active, the steps that a trace holds; remove it");
  EXPECT_EQ(idle_after(wait, [](TrainConfig& c) { c.profile.active = Duration::parse("1ba"); }), "");
  EXPECT_NE(idle_after([](TrainConfig& c) { c.profile.repeat_count = 0; }), "");
  EXPECT_NE(idle_after([](TrainConfig& c) { c.profile.skip_first.value = 1; }), "");
  EXPECT_EQ(idle_after([](TrainConfig& c) { c.profile.shapes = true; }), "") << "is for commands too";
}

TEST(IdleKeys, SkipsNeedAGuardThatSkips) {
  const Change skips = [](TrainConfig& c) { c.guard.max_skips = 3; };
  EXPECT_EQ(idle_after(skips), "guard.max_skips: has no effect unless guard.action = \"skip\"; remove it");
  EXPECT_EQ(idle_after(skips, [](TrainConfig& c) { c.guard.action = GuardAction::kSkip; }), "");
}

TEST(IdleKeys, OfAdaptersNeedARank) {
  const Change keys = [](TrainConfig& c) {
    c.model.lora = {.alpha = 2, .dropout = 0.1, .rslora = true, .targets = {"q_proj"}};
  };
  EXPECT_EQ(idle_after(keys),
            "lora.alpha: has no effect unless lora.rank is set; remove it\n"
            "lora.dropout: has no effect unless lora.rank is set; remove it\n"
            "lora.rslora: has no effect unless lora.rank is set; remove it\n"
            "lora.targets: has no effect unless lora.rank is set; remove it");
  EXPECT_EQ(idle_after(keys, [](TrainConfig& c) { c.model.lora.rank = 4; }), "");
}

TEST(IdleKeys, OfRecomputationAndOptimizers) {
  const Change every = [](TrainConfig& c) { c.recompute.every = 2; };
  EXPECT_NE(idle_after(every).find("recompute.every: has no effect unless recompute.mode"),
            std::string::npos);
  EXPECT_EQ(idle_after(every, [](TrainConfig& c) { c.recompute.mode = Recompute::kFull; }), "");
  const auto sgd = [](double momentum) {
    return
        [momentum](TrainConfig& c) { c.optimizer.value = SgdConfig{.momentum = momentum, .nesterov = true}; };
  };
  EXPECT_EQ(idle_after(sgd(0)), "optimizer.nesterov: has no effect without optimizer.momentum; remove it");
  EXPECT_EQ(idle_after(sgd(0.9)), "");
}

TEST(IdleKeys, ThinningACallbackNeedsEventsOfSteps) {
  const auto own = [](bool steps) {
    return [steps](TrainConfig& c) {
      ObserveConfig callback;
      callback.every = Duration::parse("5ba");
      callback[steps ? Event::kBatchEnd : Event::kEvalEnd] = FunctionRef{};
      c.callbacks["c"].value = callback;
    };
  };
  EXPECT_EQ(idle_after(own(true)), "");
  EXPECT_EQ(idle_after(own(false)),
            "callbacks.c.every: has no effect for a callback without any event of a step (batch_start, "
            "after_forward, grads_ready, batch_end); remove it");
  EXPECT_NE(idle_after([](TrainConfig& c) {
              EarlyStopConfig stop;
              stop.at = {Duration::parse("5ba")};
              c.callbacks["c"].value = stop;
            }),
            "");
  const auto spike = [](SpikeAction action) {
    return [action](TrainConfig& c) {
      LossSpikeConfig callback;
      callback.action = action, callback.factor = 0.1, callback.for_next.value = 7;
      c.callbacks["c"].value = callback;
    };
  };
  EXPECT_EQ(idle_after(spike(SpikeAction::kScaleLr)), "");
  EXPECT_EQ(idle_after(spike(SpikeAction::kWarn)),
            "callbacks.c.factor: has no effect unless action = \"scale_lr\"; remove it");
  EXPECT_NE(idle_after(spike(SpikeAction::kStop)).find("callbacks.c.for_next: has no effect with action"),
            std::string::npos);
}

}  // namespace
}  // namespace tycho
