// Whole configs as JSON: reading with all problems, identity, differences.
#include "trainer/recipe/config_io.h"

#include <gtest/gtest.h>

#include "trainer/base/error.h"

namespace tycho {
namespace {

const char* const kRecipe = R"({
  "max_duration": "100ba", "seq_len": 128, "model": {"kind": "llama", "width": 64},
  "optimizer": {"kind": "adamw", "lr": 0.0006}, "train_data": {"kind": "mds", "local_dir": "data/x"}})";

Json recipe() { return parse_json(kRecipe, "test"); }

TEST(ReadConfig, ReadsARecipeAndFillsInDefaults) {
  std::vector<ConfigProblem> problems;
  const TrainConfig config = read_config(recipe(), problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(config.seq_len, 128);
  EXPECT_EQ(config.model.as<LlamaConfig>().width, 64);
  EXPECT_EQ(config.model.as<LlamaConfig>().layers, 4);
  EXPECT_EQ(config.optimizer.as<AdamWConfig>().lr, 6e-4);
  EXPECT_EQ(config.train_data.as<MdsConfig>().local_dir, "data/x");
  EXPECT_STREQ(config.scheduler.kind(), "constant");
}

TEST(ReadConfig, ReadsBackWhatWasWritten) {
  std::vector<ConfigProblem> problems;
  const Json written = config_to_json(read_config(recipe(), problems));
  EXPECT_EQ(config_to_json(read_config(written, problems)), written);
  EXPECT_TRUE(problems.empty());
}

TEST(ReadConfig, ReportsMissingKeysAndRulesBetweenFields) {
  std::vector<ConfigProblem> problems;
  read_config(Json::object(), problems);
  std::string paths;
  for (const ConfigProblem& problem : problems) paths += problem.path + " ";
  EXPECT_EQ(paths, "max_duration model optimizer train_data ");

  Json json = recipe();
  json["model"]["heads"] = 5;
  problems.clear();
  read_config(json, problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].path, "model.heads");
}

TEST(ReadConfig, FailsWithAListOfAllProblems) {
  Json json = recipe();
  json["optimizer"]["lrr"] = 1;
  json["seq_len"] = -1;
  try {
    read_config_or_fail(json);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kRecipe);
    EXPECT_STREQ(error.what(),
                 "[config] 2 problems\n"
                 "  seq_len: expected a whole number > 0, got -1\n"
                 "  optimizer.lrr: unknown key; did you mean \"lr\"?");
  }
  EXPECT_EQ(read_config_or_fail(recipe()).seq_len, 128);
}

std::string trained_problem(const Json& json, TrainedUse use) {
  try {
    read_trained_config(json, use, "runs/x");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kRecipe);
    return error.what();
  }
  return "";
}

TEST(ReadTrainedConfig, IgnoresPartsThatItsUseDoesNotNeed) {
  Json json = recipe();
  json["optimizer"]["lrr"] = 1;
  json["guard"]["max_skips"] = 3;
  json["novelty"] = true;
  json.erase("max_duration");
  EXPECT_EQ(trained_problem(json, TrainedUse::kModel), "");
  EXPECT_EQ(trained_problem(json, TrainedUse::kEvaluation), "");
  json["train_data"]["eos_token_id"] = 1 << 30;
  json["global_batch"] = "8";
  EXPECT_EQ(trained_problem(json, TrainedUse::kModel), "");
  EXPECT_NE(trained_problem(json, TrainedUse::kEvaluation).find("global_batch: expected"), std::string::npos);
  json["global_batch"] = "8sp";
  EXPECT_NE(trained_problem(json, TrainedUse::kEvaluation).find("train_data.eos_token_id: "),
            std::string::npos);
}

TEST(ReadTrainedConfig, RefusesErrorsInTheModel) {
  Json json = recipe();
  json["model"]["heads"] = 5;
  const std::string text = trained_problem(json, TrainedUse::kModel);
  EXPECT_EQ(text.find("[recipe of runs/x] 1 problem\n  model.heads: "), 0U) << text;
  json["model"] = {{"kind", "llama"}, {"widht", 64}};
  EXPECT_NE(trained_problem(json, TrainedUse::kModel).find("model.widht: unknown key"), std::string::npos);
}

TEST(TrainConfigSchema, NamesEveryKnob) {
  const Json schema = train_config_schema();
  std::string names;
  for (const Json& field : schema["fields"]) {
    EXPECT_FALSE(field["help"].get<std::string>().empty()) << field["name"];
    names += field["name"].get<std::string>() + " ";
  }
  EXPECT_EQ(
      names,
      "run_name run_dir resume seed device threads parallel machine precision master_weights seq_len "
      "global_batch micro_batch max_duration model init lora fp8 recompute attention products loss "
      "optimizer param_groups scheduler clip guard ema tokenizer train_data data_stages eval_data eval icl "
      "ckpt log "
      "profile callbacks lua_memory ");
}

TEST(ConfigHash, IsThatOfTheMeaning) {
  std::vector<ConfigProblem> problems;
  const Json resolved = config_to_json(read_config(recipe(), problems));
  const std::string hash = config_hash(resolved);
  EXPECT_EQ(hash.size(), 32u);
  Json reordered = Json::object();
  for (auto it = resolved.rbegin(); it != resolved.rend(); ++it) reordered[it.key()] = it.value();
  EXPECT_EQ(config_hash(reordered), hash);
  Json respelled = resolved;
  respelled["clip"]["norm"] = 1;  // was 1.0
  EXPECT_EQ(config_hash(respelled), hash);
}

TEST(ConfigHash, LeavesOutWhatDoesNotChangeNumbers) {
  std::vector<ConfigProblem> problems;
  const TrainConfig config = read_config(recipe(), problems);
  const std::string hash = config_hash(config_to_json(config));
  TrainConfig same = config;
  same.run_name = "other", same.run_dir = "/x", same.resume = "none", same.threads = 3,
  same.lua_memory = {int64_t{1} << 30};
  same.log.every = {10, DurationUnit::kBatch}, same.ckpt.keep = 1;
  same.eval_data["val"] = config.train_data, same.parallel.dp_replicate = 4;
  same.eval.every = Duration{2, DurationUnit::kBatch};
  EXPECT_EQ(config_hash(config_to_json(same)), hash);
  TrainConfig other = config;
  other.seed = 18;
  EXPECT_NE(config_hash(config_to_json(other)), hash);
  other = config;
  std::get<AdamWConfig>(other.optimizer.value).eps = 1.0000000000000002e-8;
  EXPECT_NE(config_hash(config_to_json(other)), hash);
}

TEST(ConfigHash, NeverChanges) {
  // Another value means that resumed runs are told their recipe had changed.
  EXPECT_EQ(config_hash(parse_json(R"({"seed": 17, "model": {"kind": "llama", "eps": 1e-5}})", "test")),
            "87e69fc1c196e49b62ad3ef3fa9434c8");
}

TEST(DiffConfigs, NamesEveryLeafThatDiffers) {
  const Json a =
      parse_json(R"({"seed": 1, "same": [1, 2], "model": {"kind": "llama", "width": 64}, "old": true})", "a");
  const Json b = parse_json(
      R"({"new": {"x": null}, "model": {"width": 128, "kind": "llama"}, "same": [1, 2.0], "seed": 2})", "b");
  const std::vector<ConfigDifference> differences = diff_configs(a, b);
  std::string text;
  for (const auto& [path, old_value, new_value] : differences)
    text += path + " " + old_value + " -> " + new_value + "\n";
  EXPECT_EQ(text, "seed 1 -> 2\nmodel.width 64 -> 128\nold true -> \nnew.x  -> null\n");
  EXPECT_TRUE(diff_configs(a, a).empty());
}

TEST(DiffConfigs, NamesFormulasByTheirHashes) {
  const auto recipe = [](const char* number) {
    return parse_json(
        fmt::format(
            R"({{"updates": [{{"hidden": true, "expression": {{"inputs": [], "nodes": [["number", {}]],
                                      "outputs": [{{"name": "p", "node": 0}}]}}}}]}})",
            number),
        "recipe");
  };
  const std::vector<ConfigDifference> differences = diff_configs(recipe("1"), recipe("2"));
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].path, "updates");
  EXPECT_EQ(differences[0].old_value.size(), std::string("formulas 01234567").size());
  EXPECT_TRUE(differences[0].new_value.starts_with("formulas "));
  EXPECT_NE(differences[0].old_value, differences[0].new_value);
  EXPECT_TRUE(diff_configs(recipe("1"), recipe("1")).empty());
}

}  // namespace
}  // namespace tycho
