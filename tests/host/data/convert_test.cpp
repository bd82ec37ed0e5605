// Data sets of the hub by LLM Foundry's names, through the program: the walk-throughs' lines.
#include <gtest/gtest.h>

#include "tests/host/shell.h"
#include "tests/trainer/data/data_testing.h"
#include "tests/trainer/hub/hub_fixture.h"

namespace tycho {
namespace {

using testing::golden;
using testing::HubFixture;
using testing::TempDir;

constexpr const char* kCard =
    "---\nconfigs:\n- config_name: en\n  data_files:\n  - split: train\n    path: en/c4-train.*.json\n"
    "  - split: validation\n    path: en/c4-validation.*.json\n---\n";

std::string documents(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i)
    lines += "{\"text\": \"Story " + std::to_string(i) + " begins, goes on for a while, and ends.\"}\n";
  return lines;
}

class HubConvertTest : public HubFixture {
 protected:
  HubConvertTest() {
    server_.add_file("datasets/allenai/c4", "README.md", kCard);
    server_.add_file("datasets/allenai/c4", "en/c4-train.00000-of-00001.json", documents(200), true);
    server_.add_file("datasets/allenai/c4", "en/c4-validation.00000-of-00001.json", documents(150), true);
    server_.add_file("models/EleutherAI/gpt-neox-20b", "tokenizer.json",
                     read_file(golden("tokenizer/whole.json")), true);
  }

  Outcome convert(const std::string& line) {
    return shell("cd " + temp_.path() + " && tycho data convert " + line);
  }
  std::string samples_of(const std::string& split) {
    return shell("tycho data inspect " + temp_.path() + "/" + split + " --json | grep samples").output;
  }

  TempDir temp_;
};

TEST_F(HubConvertTest, TheLineOfTheWalkThroughRuns) {
  const Outcome outcome = convert(
      "--dataset allenai/c4 --data_subset en --out_root my-copy-c4 --splits train val --concat_tokens 16 "
      "--tokenizer EleutherAI/gpt-neox-20b --eos_text \"<|endoftext|>\" --num_workers 8");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "my-copy-c4/train");
  EXPECT_CONTAINS(outcome.output, "my-copy-c4/val");
  EXPECT_TRUE(std::filesystem::exists(temp_ / "my-copy-c4/val/index.json"));
  EXPECT_TRUE(std::filesystem::exists(temp_ / "my-copy-c4/tokenizer.json"));
}

TEST_F(HubConvertTest, SmallSplitsHaveLlmFoundrysNumberOfSamplesAndAreLeftWhenComplete) {
  const std::string line =
      "--dataset allenai/c4 --config en --out c4 --splits val_xxsmall,train_small --concat-tokens 16 "
      "--tokenizer "
      "EleutherAI/gpt-neox-20b --eos-text \"<|endoftext|>\"";
  const Outcome outcome = convert(line);
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_CONTAINS(samples_of("c4/val_xxsmall"), "100");
  const Outcome again = convert(line);
  EXPECT_EQ(again.code, 0) << again.output;
  EXPECT_CONTAINS(again.output, "val_xxsmall is there already");
}

TEST_F(HubConvertTest, WrongWordsSayWhatToType) {
  const Outcome both = convert("in.jsonl --dataset allenai/c4 --tokenizer x.json --out c4");
  EXPECT_EQ(both.code, 2);
  EXPECT_CONTAINS(both.output, "expected --dataset or words");
  const Outcome plain = convert("allenai/c4 --tokenizer " + golden("tokenizer/whole.json") + " --out c4");
  EXPECT_EQ(plain.code, 12);
  EXPECT_CONTAINS(plain.output, "hf://datasets/allenai/c4");
  const Outcome configuration = convert("hf://datasets/allenai/c4 --config de --tokenizer " +
                                        golden("tokenizer/whole.json") + " --out c4");
  EXPECT_EQ(configuration.code, 12);
  EXPECT_CONTAINS(configuration.output, "no configuration de; it has: en");
}

TEST_F(HubConvertTest, AMistypedPathIsNoNameOfTheHub) {
  testing::write_text(temp_ / "in.jsonl", documents(5));
  testing::write_text(temp_ / "tokenizers/mine.json", "{}");
  testing::write_text(temp_ / "data/rows.jsonl", documents(5));
  for (const char* line : {"in.jsonl --out c4 --tokenizer tokenizers/foo",
                           "--dataset data/rows --splits train --out c4 --tokenizer tokenizers/mine.json"}) {
    const Outcome path = convert(line);
    EXPECT_EQ(path.code, 12);
    EXPECT_CONTAINS(path.output, " has no such file or folder; for the hub write hf://");
  }
  EXPECT_EQ(server_.num_requests(), 0);
  const Outcome name = convert("in.jsonl --out c4 --tokenizer nobody/foo");
  EXPECT_EQ(name.code, 12);
  EXPECT_CONTAINS(name.output,
                  "there is no such file or folder here, so hf://nobody/foo was asked for:\n[hub] ");
}

TEST_F(HubConvertTest, AFolderWithACardIsReadTheSameWay) {
  testing::write_text(temp_ / "folder/README.md", kCard);
  testing::write_text(temp_ / "folder/en/c4-train.00000-of-00001.json", documents(50));
  testing::write_text(temp_ / "folder/en/c4-validation.00000-of-00001.json", documents(20));
  const Outcome outcome =
      convert("folder --config en --split validation --concat-tokens 16 --eos-text x --tokenizer " +
              golden("tokenizer/whole.json") + " --out c4");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "configuration en, the split validation is read");
}

}  // namespace
}  // namespace tycho
