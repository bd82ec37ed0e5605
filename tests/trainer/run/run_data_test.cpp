// What a run says of its data when it starts.
#include "trainer/run/run_data.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/trainer/run/run_fixture.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/huggingface/hf_config.h"
#include "trainer/huggingface/hf_folder.h"
#include "trainer/metrics/reporter.h"

namespace tycho {
namespace {

class Warnings : public Reporter {
 public:
  void event(const std::string& kind, const std::string& text, const Json& /*facts*/) override {
    EXPECT_EQ(kind, "warning");
    texts.push_back(text);
  }
  std::vector<std::string> texts;
};

TEST(RunData, WarnsOfMoreThanFiftyMillionSamplesInOneList) {
  TrainConfig config;
  MdsConfig data;
  data.local_dir = "/data/c4";
  const auto texts = [&](int64_t num_samples) {
    config.train_data.value = data;
    Warnings warnings;
    report_orders(config, {}, num_samples, warnings);
    return warnings.texts;
  };
  EXPECT_TRUE(texts(50'000'000).empty());
  const std::vector<std::string> found = texts(250'000'000);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].find("train_data.shuffle_algo: \"naive\" shuffles 250 million samples of /data/c4"), 0u)
      << found[0];
  EXPECT_NE(found[0].find("1.00 GB in every process, and 2.5 s"), std::string::npos) << found[0];
  data.shuffle_algo = ShuffleAlgo::kPy1s;
  EXPECT_TRUE(texts(250'000'000).empty());
  data.shuffle_algo = ShuffleAlgo::kNaive;
  data.shuffle = false;
  EXPECT_TRUE(texts(250'000'000).empty());
}

TEST_F(RunTest, DataOfAnotherLengthIsRefusedBeforeTheRunFolderIsMade) {
  write_data(8, 2 * config_.seq_len, 32);
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kUnusable);
  EXPECT_NE(std::string(error.what()).find("train_data.recut = true"), std::string::npos) << error.what();
  EXPECT_FALSE(std::filesystem::exists(run_dir()));
}

/// A run from the golden Llama, whose vocabulary is 101, with a tokenizer of 405 tokens beside its weights.
class RunFromWeights : public RunTest {
 protected:
  RunFromWeights() {
    const std::string golden = TYCHO_GOLDEN_DIR;
    std::filesystem::copy(golden + "/hf/llama", folder_);
    std::ofstream(folder_ + "/tokenizer.json") << read_file(golden + "/tokenizer_styles/gpt2.json");
    config_.model = read_hf_config(read_hf_config_file(folder_), folder_, HfStart::kItsWeights).model;
    std::visit([&](auto& family) { family.weights = folder_; }, config_.model.value);
    config_.max_duration = {3, DurationUnit::kBatch};
    write_data(8, 16, 101);
  }
  std::vector<std::string> warnings() const {
    std::vector<std::string> found;
    for (const Json& event : lines("events.jsonl"))
      if (event.at("kind") == "warning") found.push_back(event.at("text"));
    return found;
  }
  const std::string folder_ = dir_ / "hf";
};

TEST_F(RunFromWeights, WarnsOfATokenizerWithMoreTokensThanTheModel) {
  ASSERT_EQ(run(), 0);
  const std::vector<std::string> found = warnings();
  EXPECT_EQ(std::count(found.begin(), found.end(),
                       "the tokenizer.json of " + folder_ +
                           " has 405 tokens, the model 101: the model has nothing for ids from 101 on, and a "
                           "recipe for it cannot name this tokenizer"),
            1)
      << Json(found);
}

TEST_F(RunFromWeights, ATokenizerThatTheModelHasRowsForIsNoWarning) {
  Warnings none;
  std::visit([](auto& family) { family.vocab_size = 405; }, config_.model.value);
  report_tokenizer_of_weights(config_, none);
  std::ofstream(folder_ + "/added_tokens.json") << R"({"<more>": 405})";
  EXPECT_TRUE(none.texts.empty());
  report_tokenizer_of_weights(config_, none);
  EXPECT_EQ(none.texts.size(), 1u);
}

/// Another model.vocab_size would not fit the weights.
TEST_F(RunFromWeights, ATokenizerThatIsTooLargeForTheWeightsIsNotAnsweredWithAnotherVocabSize) {
  config_.tokenizer = folder_ + "/tokenizer.json";
  const std::string error = run_error().what();
  EXPECT_NE(
      error.find("[tokenizer] expected at most the 101 tokens of the model, got 405 in " + config_.tokenizer +
                 ": model.weights has no rows for the rest. Use the tokenizer that "
                 "these weights were trained with"),
      std::string::npos)
      << error;
  EXPECT_EQ(error.find("vocab_size"), std::string::npos) << error;
  EXPECT_FALSE(std::filesystem::exists(run_dir() + "/checkpoints"));
}

/// transformers adds it behind all others, and a model of 405 rows has none for it.
TEST_F(RunFromWeights, ATokenThatOnlyFilesBesideTheTokenizerNameIsNamed) {
  config_.tokenizer = folder_ + "/tokenizer.json";
  std::ofstream(folder_ + "/tokenizer_config.json") << R"({"pad_token": "<mark>"})";
  for (const bool from_weights : {false, true}) {
    std::visit(
        [&](auto& family) {
          family.vocab_size = 405;
          family.weights = from_weights ? folder_ : "";
        },
        config_.model.value);
    const std::string error = run_error().what();
    EXPECT_NE(error.find(". 1 of them, such as \"<mark>\", is only in tokenizer_config.json"),
              std::string::npos)
        << error;
    EXPECT_NE(error.find("if the model has no rows for them, take them out there"), std::string::npos)
        << error;
  }
}

}  // namespace
}  // namespace tycho
