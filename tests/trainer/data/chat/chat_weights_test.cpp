// Weights of examples: a field of a line of JSONL.
#include <gtest/gtest.h>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/chat/chat_dataset.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

class ChatWeights : public ::testing::Test {
 protected:
  ChatWeights() {
    config_.path = temp_ / "rows.jsonl";
    config_.weights = "weight", config_.pack = true;
  }
  static std::string weighed(double weight) {
    return Json{{"prompt", "a"}, {"response", "rate rate"}, {"weight", weight}}.dump() + "\n";
  }
  ChatDataset open() const { return ChatDataset(config_, shape_, never_stopped); }
  void expect_unusable(std::initializer_list<std::string_view> parts) const {
    expect_error(ExitCode::kUnusable, parts, [&] { open(); });
  }

  TempDir temp_;
  ChatConfig config_;
  RowShape shape_{
      .seq_len = 64, .vocab_size = 512, .tokenizer = golden("tokenizer/lines.json"), .marks = true};
};

TEST_F(ChatWeights, AreThoseOfAnExamplesTargets) {
  write_text(config_.path, weighed(2) + weighed(-0.5));
  const Batch batch = open().read_batch(std::vector<uint32_t>{0}, 2);
  double sum = 0;
  for (size_t t = 0; t < batch.weights.size(); ++t) {
    EXPECT_EQ(batch.weights[t] == 0, batch.targets[t] == kNoTarget) << t;
    sum += batch.weights[t];
  }
  EXPECT_EQ(sum, (2 - 0.5) * static_cast<double>(batch.valid_tokens) / 2);
  EXPECT_EQ(weight_of(batch), 2.5 * static_cast<double>(batch.valid_tokens) / 2);
}

TEST_F(ChatWeights, ThatAreNegativeNeedALossThatReadsThem) {
  write_text(config_.path, weighed(2) + weighed(-0.5));
  shape_.marks = false;
  expect_unusable({"row 2 of", "at least 0, got -0.5", "z.weight"});
}

TEST_F(ChatWeights, AreInEveryLineOfJsonlAndInNothingElse) {
  write_text(config_.path, "{\"prompt\": \"a\", \"response\": \"b\"}\n");
  expect_unusable({"rows.jsonl:1", "expected a number \"weight\", the row's weight, got none"});
  config_.path = temp_ / "rows.csv";
  write_text(config_.path, "prompt,response,weight\na,b,1\n");
  expect_unusable({"rows.csv", "expected JSONL, whose lines can have a weight (weight)"});
}

}  // namespace
}  // namespace tycho
