// Runs on finetuning data: they learn, go on bit for bit, evaluate alike packed or not, and stop at wrong
// rows.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "tests/trainer/run/run_fixture.h"
#include "trainer/run/evaluate_checkpoint.h"
#include "trainer/run/open_session.h"

namespace tycho {
namespace {

class ChatRunTest : public RunTest {
 protected:
  ChatRunTest() {
    auto model = config_.model.as<LlamaConfig>();
    model.vocab_size = 512;
    config_.model.value = model;
    config_.seq_len = 128;
    config_.tokenizer = std::string(TYCHO_GOLDEN_DIR) + "/tokenizer/lines.json";
    data_.path = dir_ / "sft.jsonl";
    data_.pack = true;
    config_.train_data.value = data_;
  }
  void write_rows(int count) {
    std::ofstream out(data_.path);
    const char* words[] = {"tensor", "shard", "gradient", "learn", "rates", "kernel", "model's"};
    for (int i = 0; i < count; ++i) {
      std::string text;
      for (int w = 0; w <= i % 9; ++w) text += std::string(" ") + words[(i + w) % 7];
      if (i % 2 == 0) {
        out << Json{{"prompt", "count" + text}, {"response", text}}.dump() << "\n";
      } else {
        out << R"({"messages": [{"role": "user", "content": "say"}, {"role": "assistant", "content": ")"
            << text << "\"}]}\n";
      }
    }
  }
  /// A run that stops after five steps and goes on ends with the bits of one that does not stop.
  void expect_exact_resume() {
    ASSERT_EQ(run(), 0);
    const auto whole = newest_tensors();
    const auto whole_losses = losses();
    std::filesystem::remove_all(run_dir());
    ASSERT_EQ(run("5ba"), 0);
    ASSERT_EQ(run(), 0);
    EXPECT_EQ(newest_tensors(), whole);
    EXPECT_EQ(losses(), whole_losses);
  }
  Json last_evaluation() const {
    Json facts;
    for (const Json& event : lines("events.jsonl"))
      if (event.at("kind") == "eval") facts = event.at("facts");
    return facts;
  }

  ChatConfig data_;
};

TEST_F(ChatRunTest, LearnsAndTellsWhatItReads) {
  write_rows(60);
  config_.max_duration = {40, DurationUnit::kBatch};
  ASSERT_EQ(run(), 0);
  EXPECT_LT(losses().at(40), 0.7 * losses().at(1));
  std::string told;
  for (const Json& event : lines("events.jsonl"))
    if (event.at("kind") == "data" || event.at("kind") == "warning")
      told += event.at("text").get<std::string>() + "\n";
  EXPECT_NE(told.find("60 examples of "), std::string::npos) << told;
  EXPECT_NE(told.find("<|im_start|> and <|im_end|> are not in the tokenizer's vocabulary"), std::string::npos)
      << told;
}

TEST_F(ChatRunTest, ResumesInTheMiddleOfAnEpochBitForBit) {
  write_rows(90);
  expect_exact_resume();
}

TEST_F(ChatRunTest, GoesOnWithRowsThatWaitForTheNextBatch) {
  write_rows(90);
  data_.packing_ratio = NumberOrAuto{6, false};
  data_.packing_groups = 2;
  data_.padding_side = PaddingSide::kLeft;
  config_.train_data.value = data_;
  ASSERT_NO_FATAL_FAILURE(expect_exact_resume());
  std::string told;
  for (const Json& event : lines("events.jsonl"))
    if (event.at("kind") == "data") told += event.at("text").get<std::string>() + "\n";
  EXPECT_NE(told.find("packed 12 examples for 2 rows at a time, packing_ratio 6"), std::string::npos) << told;
}

// Whatever is trimmed, a step learns from the same tokens: losses differ by the order of sums alone.
TEST_F(ChatRunTest, TrimmedPaddingChangesNoLossAndIsNotComputed) {
  write_rows(90);
  data_.pack = false;
  config_.train_data.value = data_;
  config_.eval_data["dev"].value = data_;
  ASSERT_EQ(run(), 0);
  const auto whole = losses();
  const Json whole_eval = last_evaluation();
  const auto tokens = [&] {
    return find_checkpoint(run_dir()).manifest.at("train_state").at("tokens").get<int64_t>();
  };
  const int64_t whole_tokens = tokens();
  std::filesystem::remove_all(run_dir());
  data_.trim_padding = true;
  config_.train_data.value = data_;
  config_.eval_data["dev"].value = data_;
  ASSERT_NO_FATAL_FAILURE(expect_exact_resume());
  ASSERT_EQ(losses().size(), whole.size());
  for (const auto& [step, loss] : whole) EXPECT_NEAR(losses().at(step), loss, 1e-4 * loss) << step;
  EXPECT_EQ(last_evaluation().at("tokens"), whole_eval.at("tokens"));
  EXPECT_NEAR(last_evaluation().at("loss"), whole_eval.at("loss"), 1e-4);
  EXPECT_LT(tokens(), whole_tokens);
  EXPECT_GE(2 * tokens(), whole_tokens);  // rows of 64 or 128 tokens
}

TEST_F(ChatRunTest, BucketsResumeBitForBit) {
  write_rows(90);
  data_.pack = false;
  data_.trim_padding = true;
  data_.bucket_batches = 4;
  config_.train_data.value = data_;
  ASSERT_NO_FATAL_FAILURE(expect_exact_resume());
}

TEST_F(ChatRunTest, TheLossIsTheSameWhicheverSideIsFilledUp) {
  write_rows(60);
  ASSERT_EQ(run("3ba"), 0);
  const TrainedSource trained(run_dir());
  for (const bool pack : {false, true}) {
    std::map<PaddingSide, EvalResult> results;
    for (const PaddingSide side : {PaddingSide::kRight, PaddingSide::kLeft}) {
      DataConfig data;
      data.value = ChatConfig{.path = data_.path, .pack = pack, .padding_side = side};
      results[side] = evaluate_checkpoint(trained, data, 0, at::kCPU, stop_).value().at("");
    }
    EXPECT_EQ(results[PaddingSide::kLeft].tokens, results[PaddingSide::kRight].tokens);
    EXPECT_NEAR(results[PaddingSide::kLeft].loss, results[PaddingSide::kRight].loss, 1e-5);
  }
}

// RoPE looks at distances alone and attention stays within an example, so neighbours and filler change
// nothing.
TEST_F(ChatRunTest, TheLossOfPackedRowsIsThatOfTheExamplesAlone) {
  write_rows(60);
  std::map<bool, Json> facts;
  for (const bool pack : {true, false}) {
    ChatConfig data = data_;
    data.pack = pack;
    config_.eval_data["dev"].value = data;
    std::filesystem::remove_all(run_dir());
    ASSERT_EQ(run(), 0);
    facts[pack] = last_evaluation();
    DataConfig same;
    same.value = data;
    const auto of_checkpoint =
        evaluate_checkpoint(TrainedSource(run_dir()), same, 0, at::kCPU, stop_).value().at("");
    EXPECT_NEAR(of_checkpoint.loss, facts[true].at("loss"), 1e-5);
  }
  EXPECT_EQ(facts[true].at("tokens"), facts[false].at("tokens"));
  EXPECT_GT(facts[true].at("tokens"), 60);
  EXPECT_NEAR(facts[true].at("loss"), facts[false].at("loss"), 1e-5);
}

TEST_F(ChatRunTest, CheckpointsKeepTheTemplate) {
  const std::string file = dir_ / "own.jinja",
                    text =
                        "{% for m in messages %}{{ m.role + ':' + m.content + ' ' }}{% endfor %}"
                        "{% if add_generation_prompt %}assistant:{% endif %}";
  std::ofstream(file) << text;
  data_.chat_template = file;
  config_.train_data.value = data_;
  write_rows(60);
  ASSERT_EQ(run("2ba"), 0);
  const TrainedSource kept(run_dir());
  EXPECT_EQ(kept.read_text_file("chat_template.jinja"), text);
  // Its own file is not needed to evaluate.
  std::filesystem::remove(file);
  const DataConfig same{{ChatConfig{.path = data_.path}}};
  EXPECT_GT(evaluate_checkpoint(kept, same, 0, at::kCPU, stop_).value().at("").loss, 0);
  std::ofstream(file) << text << " ";
  ASSERT_EQ(run("4ba"), 0);
  std::string told;
  for (const Json& event : lines("events.jsonl"))
    if (event.at("kind") == "warning") told += event.at("text").get<std::string>() + "\n";
  EXPECT_NE(told.find("the chat template is another one than that of"), std::string::npos) << told;
}

TEST_F(ChatRunTest, SessionsPeekAtRows) {
  write_rows(60);
  const auto session = open_session(request(), nullptr, stop_);
  const auto rows = session->peek(3);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].tokens.size(), 128u);
  EXPECT_NE(session->decode(rows[0].tokens).find("<|endoftext|>"), std::string::npos);
}

TEST_F(ChatRunTest, EpochsAreOfPackedRows) {
  write_rows(90);
  config_.max_duration = {2, DurationUnit::kEpoch};
  ASSERT_EQ(run(), 0);
  const int64_t steps = losses().rbegin()->first;
  EXPECT_GT(steps, 2);
  EXPECT_LT(steps, 2 * 90 / 4);
}

TEST_F(ChatRunTest, WrongRowsStopItBeforeItBegins) {
  write_rows(3);
  std::ofstream(data_.path, std::ios::app) << R"({"prompt": "a", "response": ""})"
                                           << "\n";
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kUnusable);
  EXPECT_EQ(std::string(error.what()), "[" + data_.path + ":4] the response is empty: leave the line out");
  EXPECT_FALSE(std::filesystem::exists(run_dir()));
}

}  // namespace
}  // namespace tycho
