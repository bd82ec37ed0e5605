// Commands: their checks, and what they change for longer than a step.
#include "trainer/callbacks/command.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "trainer/base/error.h"

namespace tycho {
namespace {

std::string refusal(const std::string& name, const Json& values, const Json& named = nullptr) {
  try {
    make_command(name, values, named, "test");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CommandTest, ArgumentsAreTakenInOrderAndByName) {
  const Command command = make_command("scale_lr", {0.5}, {{"for_next", "200ba"}}, "spike");
  EXPECT_EQ(command_text(command), "scale_lr(0.5, for_next = 200ba)");
  EXPECT_EQ(command_text(command_from_json(command_json(command))), command_text(command));
  EXPECT_EQ(command_text(make_command("set_lr", {nullptr}, nullptr, "x")), "set_lr()");
}

TEST(CommandTest, WhatDoesNotFitIsRefusedByName) {
  EXPECT_EQ(refusal("set_lrr", {0.1}), "[cmd] no command set_lrr; did you mean \"set_lr\"?");
  EXPECT_EQ(refusal("scale_lr", Json::array()),
            "[cmd.scale_lr] factor is missing: scale_lr(0.5, { for_next = \"200ba\" })");
  EXPECT_EQ(refusal("set_lr", {"fast"}), "[cmd.set_lr] lr = \"fast\": expected a number >= 0");
  EXPECT_EQ(refusal("set_lr", {NAN}), "[cmd.set_lr] lr = nan: expected a number >= 0");
  EXPECT_EQ(refusal("save", {"a/b"}), "[cmd.save] tag = \"a/b\": expected a name without \"/\"");
  EXPECT_EQ(refusal("save", {"before-lunch"}), "");
  EXPECT_EQ(refusal("set_betas", Json::array({Json::array({0.9, 1.0})})),
            "[cmd.set_betas] betas = [0.9,1.0]: expected two numbers from 0 to below 1");
  EXPECT_NE(refusal("scale_lr", {0.5}, {{"for_nxt", "2ba"}}).find("did you mean \"for_next\""),
            std::string::npos);
  EXPECT_NE(refusal("resume", {1}).find("takes at most 0 values"), std::string::npos);
  EXPECT_EQ(refusal("set_mix", {3}), "[cmd.set_mix] mix = 3: expected a table");
  EXPECT_EQ(command_text(make_command("profile", {"3ba"}, nullptr, "")), "profile(3ba)");
  EXPECT_EQ(refusal("set_optimizer", Json::array({"eps", NAN})),
            "[cmd.set_optimizer] value = nan: expected a number or a list of numbers");
  EXPECT_EQ(refusal("set_optimizer", Json::array({"betas", {0.9, INFINITY}})),
            "[cmd.set_optimizer] value = [0.9,null]: expected a number or a list of numbers");
}

TEST(CommandTest, HoldInThePlaceOfAKey) {
  EXPECT_EQ(key_of(make_command("set_lr", {0.1}, nullptr, "")), "optimizer.lr");
  EXPECT_EQ(key_of(make_command("set_optimizer", Json::array({"beta", 0.5}), nullptr, "")), "optimizer.beta");
  EXPECT_EQ(key_of(make_command("stop", Json::array(), nullptr, "")), "");
}

TEST(CommandTest, WhatACommandSetsEndsWithoutItsValue) {
  const std::map<std::string, Json> values = {
      {"set_lr", 0.1},   {"set_betas", {0.9, 0.95}},          {"set_weight_decay", 0.1},
      {"set_clip", 0.5}, {"set_schedule", {{"kind", "wsd"}}}, {"set_log_every", "10ba"}};
  for (const CommandSpec& spec : all_commands()) {
    EXPECT_EQ(spec.set != nullptr, values.contains(spec.name)) << spec.name;
    if (spec.set == nullptr) continue;
    EXPECT_STRNE(spec.key, "") << spec.name;
    Controls controls;
    spec.set(controls, make_command(spec.name, Json::array({values.at(spec.name)}), nullptr, "ann"));
    EXPECT_NE(controls, Controls()) << spec.name;
    spec.set(controls, make_command(spec.name, Json::array(), nullptr, "ann"));
    EXPECT_EQ(controls, Controls()) << spec.name;
  }
}

TEST(CommandTest, SpellingsForOperatorsAreWordsOfTheirOwn) {
  std::set<std::string> seen;
  for (const CommandSpec& spec : all_commands()) {
    const std::string spelling = spec.ctl;
    if (spelling.empty()) continue;
    EXPECT_TRUE(seen.insert(spelling).second) << spelling;
    const bool has_value = spec.set != nullptr || spelling.ends_with('.');
    EXPECT_TRUE(spelling == spec.name || (spelling.starts_with("set ") && has_value)) << spelling;
  }
}

TEST(ControlsTest, APinWinsOverWindowsAndWindowsMultiplyTheSchedule) {
  Controls controls;
  controls.lr_windows = {{0.5, 10}, {0.1, std::nullopt}};
  EXPECT_DOUBLE_EQ(controls.lr_of(1.0, 9), 0.05);
  EXPECT_DOUBLE_EQ(controls.lr_of(1.0, 10), 0.1);
  controls.lr = 3e-4;
  EXPECT_DOUBLE_EQ(controls.lr_of(1.0, 9), 3e-4);
  controls.expire(10);
  EXPECT_EQ(controls.lr_windows.size(), 1u);
}

TEST(ControlsTest, ComeBackFromJsonAsTheyWere) {
  Controls controls;
  EXPECT_TRUE(controls.to_json().is_null());
  controls.lr = 0.1;
  controls.lr_windows = {{0.5, 10}, {2, std::nullopt}};
  controls.betas = {{0.8, 0.9}};
  controls.weight_decay = 0.2;
  controls.clip_norm = 3;
  controls.optimizer = {{"eps", 1e-6}, {"gammas", {0.5, 0.25}}};
  controls.scheduler = {{"kind", "linear"}};
  controls.log_every = Duration{5, DurationUnit::kBatch};
  controls.mix = {{"code", 0.25}, {"web", 0.75}};
  controls.enabled = {{"a", false}};
  EXPECT_EQ(Controls::from_json(controls.to_json()), controls);
  EXPECT_THROW(Controls::from_json({{"moon", 1}}), Error);
}

}  // namespace
}  // namespace tycho
