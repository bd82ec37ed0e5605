// Which commands hold at a second start: each command against each key.
#include "trainer/train/with_controls.h"

#include <gtest/gtest.h>

#include <set>

namespace tycho {
namespace {

Controls all_controls() {
  Controls controls;
  controls.lr = 5e-3, controls.lr_by = "watch";
  controls.lr_windows = {{0.5, 100}};
  controls.betas = {{0.8, 0.9}};
  controls.weight_decay = 0.3, controls.clip_norm = 0.5;
  controls.optimizer = {{"momentum", 0.5}};
  controls.scheduler = {{"kind", "linear"}};
  controls.log_every = Duration::parse("5ba");
  controls.mix = {{"code", 0.25}, {"web", 0.75}};
  controls.enabled = {{"spike", false}, {"speed", true}};
  return controls;
}

/// Commands that end when this path has another value.
std::set<std::string> ended_by(const std::string& path, int64_t stage = 0) {
  Controls controls = all_controls();
  std::set<std::string> ended;
  for (const HeldCommand& one : end_changed_commands(controls, {{path, "1", "2"}}, Json::object(), stage))
    if (!one.holds) ended.insert(one.name);
  std::set<std::string> left;
  for (const HeldCommand& one : end_changed_commands(controls, {}, Json::object(), stage)) {
    EXPECT_TRUE(one.holds);
    left.insert(one.name);
  }
  for (const std::string& name : ended)
    EXPECT_FALSE(left.contains(name)) << name << " is in force after " << path;
  EXPECT_EQ(ended.size() + left.size(), 11u) << path;
  return ended;
}

TEST(HeldCommands, EndWithTheKeyThatTheyStandFor) {
  using Names = std::set<std::string>;
  EXPECT_EQ(ended_by("optimizer.lr"), (Names{"set_lr", "scale_lr"}));
  EXPECT_EQ(ended_by("scheduler.alpha_f"), (Names{"set_lr", "scale_lr", "set_schedule"}));
  EXPECT_EQ(ended_by("optimizer.betas"), (Names{"set_betas"}));
  EXPECT_EQ(ended_by("optimizer.weight_decay"), (Names{"set_weight_decay"}));
  EXPECT_EQ(ended_by("optimizer.momentum"), (Names{"set_optimizer"}));
  EXPECT_EQ(ended_by("optimizer.kind"), (Names{"set_optimizer"})) << "another optimizer's number";
  EXPECT_EQ(ended_by("clip.norm"), (Names{"set_clip"}));
  EXPECT_EQ(ended_by("clip.value"), (Names{"set_clip"})) << "it would not be used";
  EXPECT_EQ(ended_by("log.every"), (Names{"set_log_every"}));
  EXPECT_EQ(ended_by("train_data.streams.code.proportion"), (Names{"set_mix"}));
  EXPECT_EQ(ended_by("train_data.streams"), (Names{"set_mix"}));
  EXPECT_EQ(ended_by("data_stages", /*stage=*/1), (Names{"set_mix"}));
  EXPECT_EQ(ended_by("callbacks.spike.sigmas"), (Names{"disable"}));
  EXPECT_EQ(ended_by("callbacks.speed.every"), (Names{"enable"}));
}

TEST(HeldCommands, HoldWhateverElseIsChanged) {
  for (const char* path : {"max_duration", "optimizer.eps", "optimizer.lr_of_others", "log.show", "seed",
                           "train_data.streams.code.local_dir", "callbacks.spikes.sigmas", "global_batch"})
    EXPECT_TRUE(ended_by(path).empty()) << path;
}

TEST(HeldCommands, AreNamedWithWhatTheyHide) {
  Controls controls;
  controls.lr = 5e-3, controls.lr_by = "watch";
  const Json recipe = {{"optimizer", {{"lr", 0.01}}}};
  const std::vector<HeldCommand> held = end_changed_commands(controls, {}, recipe, 0);
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].note,
            "set_lr(0.005) by watch still holds, instead of optimizer.lr = 0.01 of the recipe; another value "
            "there ends it");
}

TEST(HeldCommands, OfNumbersOfTheOptimizerAreToldApartByTheirKeys) {
  Controls controls;
  controls.optimizer = {{"eps", 1e-6}, {"momentum", 0.5}};
  const std::vector<HeldCommand> held =
      end_changed_commands(controls, {{"optimizer.eps", "1e-8", "1e-7"}}, Json::object(), 0);
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[0].key, "optimizer.eps");
  EXPECT_FALSE(held[0].holds);
  EXPECT_EQ(held[1].key, "optimizer.momentum");
  EXPECT_TRUE(held[1].holds);
  EXPECT_EQ(controls.optimizer, (std::map<std::string, Json>{{"momentum", 0.5}}));
}

}  // namespace
}  // namespace tycho
