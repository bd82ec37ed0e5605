// In-context evaluation during training: when it happens, what it reports, on one rank and on several.
#include <filesystem>
#include <fstream>

#include "tests/trainer/run/sharded_fixture.h"
#include "tests/trainer/tasks/icl_golden.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/huggingface/hf_import.h"
#include "trainer/recipe/config_io.h"

namespace tycho {
namespace {

class IclRunTest : public ShardedRun {
 protected:
  IclRunTest() {
    import_hf(real_files(), kIclGoldens + "/model", dir_ / "model");
    const Json recipe = find_checkpoint(dir_ / "model").manifest.at("recipe");
    config_.model = read_trained_config(recipe, TrainedUse::kModel, "model").model;
    llama().weights = kIclGoldens + "/model";
    llama().init_std = LlamaConfig().init_std;
    config_.tokenizer = kIclGoldens + "/model/tokenizer.json";
    config_.max_duration = {4, DurationUnit::kBatch};
    config_.ckpt.every = {4, DurationUnit::kBatch};
    config_.icl.first = true;
    for (const auto& [label, type, shots] : {std::tuple{"words", IclType::kLanguageModeling, 2},
                                             {"colours", IclType::kMultipleChoice, 1},
                                             {"pronouns", IclType::kSchema, 0},
                                             {"sums", IclType::kGeneration, 0}})
      config_.icl.tasks.push_back({.label = label,
                                   .path = kIclGoldens + "/tasks/" + label + ".jsonl",
                                   .type = type,
                                   .num_fewshot = {shots}});
    config_.icl.gauntlet.categories["all"] = {{"words", 2, 0.0}, {"colours", 1, 0.25}};
  }
  std::vector<Json> evaluations() const {
    std::vector<Json> found;
    for (const Json& event : lines("events.jsonl"))
      if (event.at("kind") == "icl") found.push_back(event);
    return found;
  }
  /// What every item was answered with at a step, log-likelihoods included.
  std::vector<Json> answers(int64_t step) const {
    std::vector<Json> found;
    for (Json& line : lines("icl_outputs.jsonl"))
      if (line.at("step") == step) {
        for (const char* key : {"step", "tok", "attempt", "time"}) line.erase(key);
        found.push_back(line);
      }
    return found;
  }
  /// A Hugging Face folder like that of the goldens, with other weights: those whose names begin so.
  std::string folder_with(const std::map<std::string, std::string>& tensors, const std::string& prefix) {
    const std::string folder = dir_ / "other-weights", path = folder + "/model.safetensors";
    std::filesystem::remove_all(folder);
    std::filesystem::copy(kIclGoldens + "/model", folder);
    const SafetensorsHeader header = read_safetensors_header(path);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    for (const SafetensorsEntry& entry : header.entries) {
      const std::string& bytes = tensors.at(prefix + entry.name);
      EXPECT_EQ(std::ssize(bytes), entry.end - entry.begin) << entry.name;
      file.seekp(header.data_start + entry.begin).write(bytes.data(), std::ssize(bytes));
    }
    return folder;
  }
};

TEST_F(IclRunTest, ReportsAtIntervalsBeforeTheFirstStepAndAtTheEnd) {
  config_.icl.every = Duration{3, DurationUnit::kBatch};
  train(kOneRank);
  std::vector<int64_t> steps;
  for (const Json& event : evaluations()) steps.push_back(event.at("step").get<int64_t>());
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 3, 4}));
  std::map<std::string, double> first;
  for (const Json& line : lines("metrics.jsonl"))
    for (const auto& [name, value] : line.items())
      if (name.find("metrics/") != std::string::npos && line.at("step") == 0)
        first[name] = value.get<double>();
  for (const Json& expected : icl_golden("results.json"))
    for (const auto& [name, value] : expected.at("metrics").items()) {
      const auto found =
          first.find(fmt::format("metrics/{}/{}-shot/{}", expected.at("case").get<std::string>(),
                                 expected.at("num_fewshot").get<int>(), name));
      if (found == first.end()) continue;
      EXPECT_NEAR(found->second, value.get<double>(), 1e-6) << found->first;
      first.erase(found);
    }
  EXPECT_EQ(first.size(), 2u);  // the gauntlet's
  EXPECT_NEAR(first.at("icl/metrics/eval_gauntlet/all"), (0.5 + (22.0 / 30 - 0.25) / 0.75) / 2, 1e-6);
}

TEST_F(IclRunTest, RecordsOutputsInAFileAndAsATable) {
  config_.icl.outputs = true;
  train_in("several", TestMesh{2, 1});
  std::map<std::pair<int64_t, std::string>, int> items;
  for (const Json& line : lines("icl_outputs.jsonl")) {
    EXPECT_TRUE(line.contains("right") && line.contains("item")) << line;
    ++items[{line.at("step"), line.at("task")}];
  }
  const std::map<std::pair<int64_t, std::string>, int> wanted = {
      {{0, "words/2-shot"}, 24},   {{0, "colours/1-shot"}, 30}, {{0, "pronouns/0-shot"}, 9},
      {{0, "sums/0-shot"}, 14},    {{4, "words/2-shot"}, 24},   {{4, "colours/1-shot"}, 30},
      {{4, "pronouns/0-shot"}, 9}, {{4, "sums/0-shot"}, 14}};
  EXPECT_EQ(items, wanted);
  int tables = 0;
  for (const Json& event : lines("events.jsonl"))
    if (event.at("kind") == "text") {
      EXPECT_TRUE(event.at("facts").at("name").get<std::string>().starts_with("icl/"));
      EXPECT_TRUE(event.at("facts").at("text").get<std::string>().starts_with("| right | prompt |"));
      ++tables;
    }
  EXPECT_EQ(tables, 8);
}

TEST_F(IclRunTest, SeveralRanksMeasureWhatOneDoes) {
  train(kOneRank);
  const Json wanted = evaluations().at(0).at("facts");
  for (const TestMesh& mesh :
       {TestMesh{2, 1}, TestMesh{1, 3}, kTwoByTwo, kTp, TestMesh{.cp = 2}, TestMesh{.pp = 2},
        TestMesh{.shard = 2, .cp = 2}, TestMesh{.tp = 2, .pp = 2}, TestMesh{.cp = 2, .pp = 2}}) {
    SCOPED_TRACE(mesh.name());
    config_.global_batch = {mesh.shard == 3 ? 9.0 : 8.0, DurationUnit::kSample};
    train_in("several", mesh);
    ASSERT_EQ(evaluations().size(), 2u);
    EXPECT_EQ(evaluations()[0].at("facts").at("metrics"), wanted.at("metrics"));
  }
}

// The oracle is a model that has the average, as the checkpoint keeps it, for its only weights.
TEST_F(IclRunTest, AsksTheAverageWhileTrainingGoesOnFromTheTrainedWeights) {
  config_.icl.every = Duration{2, DurationUnit::kBatch};
  config_.icl.outputs = true;
  config_.ckpt.every = {2, DurationUnit::kBatch};
  for (const TestMesh& mesh : {kOneRank, kTwo}) {
    SCOPED_TRACE(mesh.name());
    config_.ema.half_life = Duration::parse("4ba");
    train_in("asked", mesh);
    const auto final_tensors = newest_tensors();
    std::map<int64_t, std::vector<Json>> given;
    std::map<int64_t, std::map<std::string, std::string>> tensors;
    for (const CheckpointInfo& info : list_checkpoints(run_dir() + "/checkpoints"))
      given[info.step] = answers(info.step), tensors[info.step] = tensors_of(info.path);
    for (const Json& event : evaluations())
      EXPECT_EQ(event.at("facts").value("weights", ""), event.at("step") == 0 ? "" : "ema");

    TrainConfig without = config_;
    without.icl = {};
    std::swap(config_, without);
    train_in("not-asked", mesh);
    EXPECT_TRUE(newest_tensors() == final_tensors) << "asking changed the training";
    std::swap(config_, without);

    const TrainConfig asked = config_;
    config_.ema = {};
    config_.max_duration = {2, DurationUnit::kBatch};
    ASSERT_EQ(given.size(), 2U);
    for (const auto& [step, of_average] : given) {
      ASSERT_EQ(of_average.size(), 24U + 30 + 9 + 14);
      const auto answered_with = [&](const std::string& prefix) {
        llama().weights = folder_with(tensors.at(step), prefix);
        train_in("oracle", mesh);
        return answers(0);
      };
      EXPECT_EQ(of_average, answered_with("ema.")) << "step " << step;
      EXPECT_NE(of_average, answered_with("")) << "step " << step;
    }
    config_ = asked;
  }
}

TEST_F(IclRunTest, ATaskThatIsWrongEndsTheRunBeforeTheFirstStep) {
  config_.icl.tasks[0].path = dir_ / "absent.jsonl";
  EXPECT_NE(std::string(run_error().what()).find("absent.jsonl"), std::string::npos);
  config_.icl.tasks[0].path = kIclGoldens + "/tasks/sums.jsonl";
  EXPECT_NE(std::string(run_error().what()).find("sums.jsonl:1: an item of type language_modeling"),
            std::string::npos);
}

}  // namespace
}  // namespace tycho
