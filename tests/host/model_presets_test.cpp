// Published models in recipes: presets of the families, and folders with keys that are to be ignored.
#include "tests/host/shell.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

class ModelPresetsTest : public ShellTest {
 protected:
  Json plan(const std::string& arguments = "") {
    const Outcome planned = here("tycho plan --json x.lua " + arguments);
    EXPECT_EQ(planned.code, 0) << planned.output;
    return planned.code == 0 ? Json::parse(planned.output) : Json();
  }
};

TEST_F(ModelPresetsTest, APresetFillsTheFieldsAndGivenFieldsWin) {
  write(whole("r.model = t.model.qwen3 { preset = \"0.6b\", layers = 4 }\nr.seq_len = 64\n"));
  const Outcome shown = here("tycho config x.lua --changed");
  EXPECT_EQ(shown.code, 0) << shown.output;
  for (const char* part : {"model.width", "1024", "model.head_width", "128", "151936"})
    EXPECT_CONTAINS(shown.output, part);
  EXPECT_EQ(plan()["num_params"], 596049920 - 24 * int64_t{15730944});
  EXPECT_EQ(plan("model.layers=28")["num_params"], 596049920) << "overrides work as for any field";
  EXPECT_EQ(here("tycho check x.lua").output.find("warning: model"), std::string::npos);
}

// The recipe of a run is read again without the preset.
TEST_F(ModelPresetsTest, TheResolvedRecipeSpellsTheValuesOut) {
  write(whole("r.model = t.model.gemma3 { preset = \"270m\" }\nr.seq_len = 64\n"));
  const Outcome shown = here("tycho config x.lua --json model");
  EXPECT_EQ(shown.code, 0) << shown.output;
  EXPECT_CONTAINS(shown.output, "model.query_pre_attn_scalar");
  EXPECT_EQ(shown.output.find("model.preset"), std::string::npos);
}

TEST_F(ModelPresetsTest, AnUnknownPresetIsAnErrorThatNamesTheOthers) {
  write(whole("r.model = t.model.qwen3 { preset = \"0.7b\" }\n"));
  const Outcome wrong = here("tycho check x.lua");
  EXPECT_EQ(wrong.code, 10);
  EXPECT_CONTAINS(wrong.output, "t.model.qwen3 has no preset \"0.7b\"");
  EXPECT_CONTAINS(wrong.output, "did you mean");
  EXPECT_CONTAINS(wrong.output, "\"32b\"");
  write(whole("r.model = t.model.qwen3 { preset = 4 }\n"));
  EXPECT_CONTAINS(here("tycho check x.lua").output, "expects the name of a preset");
  write(whole("r.model = t.model.mpt { preset = \"7b\" }\n"));
  EXPECT_CONTAINS(here("tycho check x.lua").output, "preset");
  EXPECT_EQ(here("tycho check x.lua").code, 10);
}

TEST_F(ModelPresetsTest, TheCommandLineSaysHowAPresetBecomesAnArgument) {
  write(whole("r.model = t.model.qwen3 { preset = t.arg(\"preset\", \"0.6b\") }\nr.seq_len = 64\n"));
  EXPECT_EQ(plan("preset=1.7b")["num_params"], 1720574976);
  const Outcome refused = here("tycho check x.lua model.preset=1.7b");
  EXPECT_EQ(refused.code, 10);
  EXPECT_CONTAINS(refused.output, "t.arg(\"preset\", \"0.6b\")");
}

TEST_F(ModelPresetsTest, TheStubsKnowThem) {
  ASSERT_EQ(here("tycho types").code, 0);
  const Outcome stubs = here("grep 'field qwen3 fun' types/tycho.lua");
  EXPECT_CONTAINS(stubs.output, "preset: \"0.6b\"|\"1.7b\"");
}

const std::string kTiedQwen3 = TYCHO_SOURCE_DIR "/tests/golden/families/qwen3_tied";

TEST_F(ModelPresetsTest, AFolderWithAnUnknownKeyIsReadWhereTheKeyIsIgnored) {
  std::filesystem::copy(kTiedQwen3, folder_ / "hf");
  ASSERT_EQ(here("sed -i \"s/{/{ \\\"quantum\\\": 3,/\" hf/config.json").code, 0);
  const auto check = [&](const std::string& ignore) {
    write(whole("r.model = t.model.hf { path = \"hf\"" + ignore + " }\nr.seq_len = 16\n"));
    return here("tycho config x.lua model.heads");
  };
  EXPECT_EQ(check("").code, 10);
  EXPECT_CONTAINS(check("").output, "quantum: is unknown to Tycho");
  EXPECT_EQ(check(", ignore = { \"quantum\" }").code, 0) << check(", ignore = { \"quantum\" }").output;
  EXPECT_CONTAINS(check(", ignore = { \"quantum\", \"rms_norm_eps\" }").output,
                  "rms_norm_eps: cannot be ignored: Tycho knows this key");
  EXPECT_CONTAINS(check(", ignore = { \"quantum\", \"x\" }").output, "x: is to be ignored");
  EXPECT_CONTAINS(check(", ignore = \"quantum\"").output, "expects a list of keys");
  EXPECT_EQ(here("tycho convert hf run").code, 12);
  const Outcome in = here("tycho convert hf run --ignore quantum");
  EXPECT_EQ(in.code, 0) << in.output;
  EXPECT_EQ(here("tycho convert run out --ignore quantum").code, 2);
  EXPECT_EQ(here("tycho convert run out && grep quantum out/config.json").code, 1);
}

// Gemma 2's own default is 50: a folder without a cap must not fall back to it.
TEST_F(ModelPresetsTest, WhatAFolderSwitchesOffStaysOff) {
  std::filesystem::copy(TYCHO_SOURCE_DIR "/tests/golden/families/gemma2", folder_ / "hf");
  ASSERT_EQ(here("sed -i \"s/\\\"attn_logit_softcapping\\\": 2.0/\\\"attn_logit_softcapping\\\": null/\" "
                 "hf/config.json && grep -c \"softcapping.*null\" hf/config.json")
                .code,
            0);
  write(whole("r.model = t.model.hf { path = \"hf\" }\nr.seq_len = 16\n"));
  const Outcome shown = here("tycho config --json x.lua model.attn_softcap");
  EXPECT_EQ(shown.code, 0) << shown.output;
  const Json rows = Json::parse(shown.output);
  ASSERT_EQ(rows.size(), 1u) << shown.output;
  EXPECT_TRUE(rows[0].at("value").is_null()) << shown.output;
}

}  // namespace
}  // namespace tycho
