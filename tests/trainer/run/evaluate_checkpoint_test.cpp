// Evaluation of a checkpoint: what the run itself saw, and what does not fit.
#include "trainer/run/evaluate_checkpoint.h"

#include <cmath>
#include <fstream>

#include "tests/trainer/run/overflowing_model.h"
#include "tests/trainer/run/run_fixture.h"
#include "trainer/data/prepare/convert.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {
namespace {

class EvaluateCheckpointTest : public RunTest {
 protected:
  DataConfig split(const std::string& name) const {
    MdsConfig data = config_.train_data.as<MdsConfig>();
    data.split = name;
    DataConfig result;
    result.value = data;
    return result;
  }
  EvalResults evaluate_sets(const std::optional<DataConfig>& data, std::optional<int64_t> batches = {}) {
    return evaluate_checkpoint(TrainedSource(run_dir()), data, batches, at::kCPU, stop_).value();
  }
  EvalResult evaluate(const DataConfig& data, int64_t batches = 0) {
    return evaluate_sets(data, batches).at("");
  }
};

TEST_F(EvaluateCheckpointTest, GivesWhatTheRunReportedAtItsEnd) {
  write_data(40, 16, 64);
  write_data(7, 16, 64, "val");
  config_.eval_data["val"] = split("val");
  ASSERT_EQ(run(), 0);
  Json facts;
  for (const Json& event : lines("events.jsonl"))
    if (event.at("kind") == "eval") facts = event.at("facts");
  const EvalResult result = evaluate(split("val"));
  EXPECT_NEAR(result.loss, facts.at("loss"), 1e-12);
  EXPECT_EQ(result.tokens, 7 * 15);
  EXPECT_EQ(evaluate(split("val"), 1).tokens, 4 * 15);  // one batch of the recipe
}

TEST_F(EvaluateCheckpointTest, DataOfAnyLengthIsCutAnewUnlessTrainingLeftItsEndsOut) {
  write_data(40, 16, 64);
  write_data(5, 40, 64, "long");
  ASSERT_EQ(run("2ba"), 0);
  EXPECT_EQ(evaluate(split("long")).tokens, 5 * 40 / 16 * 15);
  std::get<MdsConfig>(config_.train_data.value).truncate = true;
  config_.run_dir += "-truncating";
  ASSERT_EQ(run("2ba"), 0);
  EXPECT_EQ(evaluate(split("long")).tokens, 5 * 15);
}

TEST_F(EvaluateCheckpointTest, ARuleThatIsNewerThanACheckpointCountsOnlyForWhatIsNeeded) {
  write_data(40, 16, 64);
  ASSERT_EQ(run("2ba"), 0);
  const double loss = evaluate(split("train")).loss;
  const auto with = [&](const std::function<void(Json&)>& edit) {
    CheckpointInfo info = find_checkpoint(run_dir());
    edit(info.manifest["recipe"]);
    return evaluate_checkpoint(TrainedSource(info), split("train"), 0, at::kCPU, stop_).value().at("").loss;
  };
  EXPECT_EQ(with([](Json& recipe) { recipe["guard"]["max_skips"] = 3; }), loss);
  EXPECT_EQ(with([](Json& recipe) { recipe["optimizer"]["gone"] = 1; }), loss);
  try {
    with([](Json& recipe) { recipe["model"]["heads"] = 5; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kRecipe);
    EXPECT_NE(std::string(error.what()).find("[recipe of " + run_dir()), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("model.heads: "), std::string::npos) << error.what();
  }
}

TEST_F(EvaluateCheckpointTest, WithoutDataItEvaluatesWhatTheRecipeDoes) {
  write_data(40, 16, 64);
  write_data(7, 16, 64, "val");
  write_data(3, 16, 64, "code");
  ASSERT_EQ(run("2ba"), 0);
  try {
    evaluate_sets(std::nullopt);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("has no eval_data: name the data with --data"),
              std::string::npos);
  }
  config_.eval_data["val"] = split("val"), config_.eval_data["code"] = split("code");
  config_.eval.batches = 1;
  ASSERT_EQ(run(), 0);
  const EvalResults sets = evaluate_sets(std::nullopt);
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets.at("val").tokens, 4 * 15);
  EXPECT_EQ(sets.at("val").loss, evaluate(split("val"), 1).loss);
  EXPECT_EQ(sets.at("code").loss, evaluate(split("code")).loss);
  for (const Json& event : lines("events.jsonl")) {
    if (event.at("kind") != "eval" || !event.at("facts").at("total").get<bool>()) continue;
    EXPECT_NEAR(total_of(sets).loss, event.at("facts").at("loss"), 1e-12);
  }
  EXPECT_EQ(evaluate_sets(std::nullopt, 0).at("val").tokens, 7 * 15);
}

TEST_F(EvaluateCheckpointTest, DataOfAnotherTokenizerIsRefused) {
  std::ofstream text(dir_ / "text.txt");
  for (int i = 0; i < 300; ++i) text << "some text of many words and no sense\n";
  text.close();
  const auto convert = [&](const std::string& name, int32_t vocab_size) {
    write_file_atomically(real_files(), dir_ / (name + ".json"),
                          train_bpe({{.path = dir_ / "text.txt"}}, {.vocab_size = vocab_size}));
    convert_text({.inputs = {dir_ / "text.txt"},
                  .tokenizer = dir_ / (name + ".json"),
                  .out_dir = dir_ / name,
                  .concat_tokens = 16});
  };
  convert("data", 262);
  convert("other", 259);
  LlamaConfig model = config_.model.as<LlamaConfig>();
  model.vocab_size = 264;
  config_.model.value = model;
  config_.tokenizer = dir_ / "data.json";
  config_.max_duration = {2, DurationUnit::kBatch};
  ASSERT_EQ(run(), 0);
  EXPECT_GT(evaluate(split("train")).tokens, 0);
  DataConfig other = split("train");
  std::get<MdsConfig>(other.value).local_dir = dir_ / "other";
  try {
    evaluate(other);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUnusable);
    EXPECT_NE(std::string(error.what()).find(std::string(dir_ / "other/train") + " was made with"),
              std::string::npos)
        << error.what();
  }
}

// Another set of the same checkpoint has a number.
TEST_F(EvaluateCheckpointTest, ALossThatIsNotFiniteIsAnAnswer) {
  MptConfig mpt;
  mpt.width = 32, mpt.layers = 2, mpt.heads = 4, mpt.vocab_size = 64, mpt.max_seq_len = 16, mpt.tied = false;
  config_.model.value = mpt;
  write_data(40, 16, 63);
  write_data(40, 16, 64, "val");
  write_data(7, 16, 63, "code");
  ASSERT_EQ(run("1ba"), 0);
  export_overflowing(find_checkpoint(run_dir()), dir_ / "overflowing", 63);
  std::get<MptConfig>(config_.model.value).weights = dir_ / "overflowing";
  config_.run_dir = dir_ / "again";
  config_.eval_data["code"] = split("code"), config_.eval_data["val"] = split("val");
  ASSERT_EQ(run("2ba"), 0);
  const EvalResults sets = evaluate_sets(std::nullopt);
  EXPECT_TRUE(std::isfinite(sets.at("code").loss));
  EXPECT_TRUE(std::isnan(sets.at("val").loss));
  EXPECT_EQ(eval_json(sets.at("val")).at("loss"), nullptr);
  const std::vector<std::string> warnings = not_finite_losses(sets, "again");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings[0].starts_with("the loss of again on val is nan: ")) << warnings[0];
}

}  // namespace
}  // namespace tycho
