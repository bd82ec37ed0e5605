// LLM Foundry's block_overrides and temperature tuning in config.json, both ways, and what is wrong in them.
#include "trainer/families/foundry_blocks.h"

#include "tests/trainer/huggingface/convert_fixture.h"
#include "trainer/huggingface/hf_config.h"

namespace tycho {
namespace {

MptConfig read_mpt(const Json& json) { return read_hf_config(json, "config.json").model.as<MptConfig>(); }

/// LLM Foundry's own example: one global layer, then five of which all but two reuse, twice.
Json mpt_with_blocks() {
  Json json = parse_json(
      R"({"architectures": ["MPTForCausalLM"], "model_type": "mpt", "d_model": 256, "n_heads": 4, "no_bias": true,
    "attn_config": {"rope": true, "attn_temperature_tuning": {"attn_scale": 0.1, "floor_scale": 4096}}})",
      "config.json");
  json["n_layers"] = 13;
  json["block_overrides"] = parse_json(
      R"({"order": [{"name": "default"}, {"repeat": 2, "order": [{"name": "near"}, {"name": "near_again"},
      {"name": "near"}, {"repeat": 2, "name": "near_again"}, {"name": "again"}]}], "overrides": {
      "near": {"attn_config": {"sliding_window_size": 1024}},
      "near_again": {"attn_config": {"sliding_window_size": 1024, "reuse_kv_layer_idx": -1}},
      "again": {"attn_config": {"reuse_kv_layer_idx": -6, "nope": true,
                                "attn_temperature_tuning": {"attn_scale": 0.0}}}, "unused": {"attn_config": {}}}})",
      "block_overrides");
  return json;
}

TEST(FoundryBlocks, ReadsBlocksThatDiffer) {
  const auto model = read_mpt(mpt_with_blocks());
  EXPECT_EQ(model.temperature_tuning.floor_scale, 4096);
  EXPECT_EQ(
      model.blocks.order,
      (std::vector<std::string>{"default", "near", "near_again", "near", "near_again", "near_again", "again",
                                "near", "near_again", "near", "near_again", "near_again", "again"}));
  EXPECT_EQ(model.blocks.kinds.size(), 3u);
  EXPECT_EQ(model.blocks.kinds.at("near_again").reuse_kv, 1);
  EXPECT_EQ(model.blocks.kinds.at("again").reuse_kv, 6);
  EXPECT_TRUE(model.blocks.kinds.at("again").nope);
  EXPECT_EQ(model.blocks.kinds.at("again").temperature_tuning.attn_scale, 0);
  Json periodic = mpt_with_blocks();
  periodic["n_layers"] = 8;
  periodic["block_overrides"]["repeat"] = 2;
  periodic["block_overrides"]["order"] =
      parse_json(R"([{"name": "near", "repeat": 3}, {"name": "unused"}])", "order");
  const auto repeated = read_mpt(periodic);
  EXPECT_EQ(repeated.blocks.order, (std::vector<std::string>{"near", "near", "near", "default"}));
  EXPECT_EQ(repeated.blocks.kinds.size(), 1u);
}

TEST(FoundryBlocks, GivesKindsTheirShareOfATuningThatIsOff) {
  Json json = mpt_with_blocks();
  json["attn_config"]["attn_temperature_tuning"] = {{"attn_scale", 0.0}, {"floor_scale", 100}};
  Json& overrides = json["block_overrides"]["overrides"];
  overrides["near"]["attn_config"]["attn_temperature_tuning"] = {{"attn_scale", 0.2}};
  overrides["near_again"]["attn_config"]["attn_temperature_tuning"] = {{"floor_scale", 7}};
  const auto model = read_mpt(json);
  EXPECT_EQ(model.temperature_tuning.floor_scale, std::nullopt);
  EXPECT_EQ(model.blocks.kinds.at("near").temperature_tuning.floor_scale, 100);
  EXPECT_EQ(model.blocks.kinds.at("near_again").temperature_tuning.floor_scale, std::nullopt);
  EXPECT_EQ(model.blocks.kinds.at("again").temperature_tuning.attn_scale, std::nullopt);
}

TEST(FoundryBlocks, WritesBlocksThatDifferForLlmFoundry) {
  const HfConfigText text = write_hf_config(read_hf_config(mpt_with_blocks(), "").model, 1024);
  EXPECT_EQ(text.json["architectures"][0], "MPTForCausalLM");
  expect_contains(text.warnings.at(0), "temperature tuning, blocks that differ");
  EXPECT_EQ(text.json["block_overrides"]["overrides"]["near_again"]["attn_config"],
            (Json{{"sliding_window_size", 1024}, {"reuse_kv_layer_idx", -1}}));
  EXPECT_EQ(text.json["block_overrides"]["order"][4], (Json{{"name", "near_again"}, {"repeat", 2}}));
  EXPECT_EQ(text.json["attn_config"]["attn_impl"], "torch");
  // LLM Foundry wants an override to have the type of what it overrides.
  EXPECT_EQ(text.json["attn_config"]["attn_temperature_tuning"].dump(),
            R"({"attn_scale":0.1,"floor_scale":4096})");
  Json fraction = mpt_with_blocks();
  fraction["attn_config"].erase("attn_temperature_tuning");
  fraction["block_overrides"]["overrides"]["again"]["attn_config"]["attn_temperature_tuning"] = {
      {"attn_scale", 0.5}, {"floor_scale", 0.5}};
  EXPECT_EQ(write_hf_config(read_hf_config(fraction, "").model, 1024)
                .json["attn_config"]["attn_temperature_tuning"]
                .dump(),
            R"({"floor_scale":8192.0})");
  Json alibi = mpt_with_blocks();
  alibi["attn_config"]["alibi"] = true;
  alibi["attn_config"]["rope"] = false;
  EXPECT_EQ(write_hf_config(read_hf_config(alibi, "").model, 1024).json["attn_config"]["attn_impl"], "flash");
  EXPECT_FALSE(write_hf_config({{MptConfig()}}, 1024).json.contains("block_overrides"));
}

TEST(FoundryBlocks, NamesWhatBlocksCannotOverride) {
  Json json = mpt_with_blocks();
  Json& overrides = json["block_overrides"]["overrides"];
  overrides["near"]["attn_config"]["clip_qkv"] = 4;
  overrides["near"]["ffn_config"] = Json::object();
  overrides["again"]["attn_config"]["reuse_kv_layer_idx"] = 2;
  overrides["near_again"]["attn_config"]["reuse_kv_x_layer_idx"] = 0;
  json["block_overrides"]["order"][0]["name"] = "far";
  json["block_overrides"]["order"][1]["repeat"] = 100000000;
  const std::string text = message_of(ExitCode::kUnusable, [&] { read_hf_config(json, "config.json"); });
  expect_contains(text,
                  "block_overrides.overrides.near.attn_config.clip_qkv: cannot differ between blocks; LLM "
                  "Foundry can override sliding_window_size, nope");
  expect_contains(text, "block_overrides.overrides.near.ffn_config: cannot differ");
  expect_contains(text, "again.attn_config.reuse_kv_layer_idx: expected");
  expect_contains(text, "near_again.attn_config.reuse_kv_x_layer_idx: expected");
  expect_contains(text, "block_overrides.order[1].name: \"far\" is not one of the overrides");
  expect_contains(text, "block_overrides.order[2].repeat: expected");
  json = mpt_with_blocks();
  json["n_layers"] = 26;
  expect_contains(message_of(ExitCode::kUnusable, [&] { read_hf_config(json, "config.json"); }),
                  "block_overrides.order: gives 13 blocks, and n_layers is 26");
}

TEST(FoundryBlocks, ProjectKeysAndValuesFromEarlierInputs) {
  Json json = mpt_with_blocks();
  json["attn_config"]["fused_qkv"] = false;
  Json& again = json["block_overrides"]["overrides"]["again"]["attn_config"];
  again.erase("reuse_kv_layer_idx");
  again["reuse_kv_x_layer_idx"] = -6;
  const MptConfig model = read_mpt(json);
  EXPECT_EQ(model.blocks.kinds.at("again").reuse_kv_x, 6);
  const Json text = write_hf_config({{model}}, 1024).json;
  EXPECT_EQ(text["attn_config"]["fused_qkv"], false);
  EXPECT_EQ(text["block_overrides"]["overrides"]["again"]["attn_config"]["reuse_kv_x_layer_idx"], -6);
}

TEST(FoundryBlocks, AreWrittenAsTheyAreRead) {
  const ModelConfig model = read_hf_config(mpt_with_blocks(), "config.json").model;
  const Json text = write_hf_config(model, 1024).json;
  EXPECT_EQ(to_json(read_hf_config(text, "config.json").model), to_json(model)) << text.dump(1);
}

}  // namespace
}  // namespace tycho
