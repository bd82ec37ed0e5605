// Tests of the files of offline runs, byte for byte against those of wandb's own classes.
#include "trainer/loggers/wandb_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/trainer/metrics/fixtures.h"
#include "trainer/loggers/wandb_blocks.h"
#include "trainer/loggers/wandb_entry.h"

namespace tycho {
namespace {

// Written by tests/golden/loggers/wandb_records.py.
std::string golden() {
  return text_of(std::string(TYCHO_SOURCE_DIR) + "/tests/golden/loggers/records.wandb");
}

/// The highest step of a file with these bytes.
int64_t last_step(const std::string& bytes) {
  int64_t last = -1;
  size_t at = 0;
  while (const auto record = read_wandb_record(std::string_view(bytes).substr(at), at)) {
    const WandbEntry entry = read_wandb_entry(record->bytes);
    if (const auto* row = std::get_if<WandbStepEntry>(&entry)) last = std::max(last, row->step);
    at = record->end;
  }
  return last;
}

TEST(WandbFile, HasTheBytesOfWandbsOwnWriter) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                   kInf = std::numeric_limits<double>::infinity();
  WandbRun run{.id = "abcd1234",
               .project = "proj",
               .entity = "team",
               .group = "g",
               .name = "mpt-125m",
               .host = "node1",
               .tags = {"a", "größer"},
               .start_s = 1700000000.25,
               .resumes = true,
               .config = {{"lr", 1e-3}, {"model", {{"kind", "mpt"}, {"width", 64}}}}};
  NamedNumbers many;
  for (int i = 0; i < 2500; ++i) many.emplace_back(fmt::format("metric number {:05}", i), i + 0.5);
  WandbBlocks blocks;
  std::string file = blocks.header();
  for (const std::string& message :
       {wandb_header_message(1), wandb_run_message(2, run),
        wandb_summary_message(3, {{1, 1700000001.5, {{"loss", 3.5}}}}, 1.25),
        wandb_history_message(4, {{1, 1700000001.5, {{"loss", 3.5}, {"x", kNan}, {"y", -kInf}}}}, 1.25),
        wandb_history_message(5, {{70000, 1700000002.0, many}}, 1.75), wandb_exit_message(6, 1, 7.9)})
    file += blocks.record(message);
  ASSERT_GT(golden().size(), 2u * 32768);
  EXPECT_TRUE(file == golden());
}

TEST(WandbFile, NumbersOfTheMachineAlertsAndArtifactsHaveTheBytesOfWandbsOwnWriter) {
  const WandbRun run{.id = "abcd1234", .project = "proj", .entity = "team"};
  const WandbArtifact artifact =
      checkpoint_artifact(run.id, {8, "az://account/container/step-000000008.1a2b3c4d", 10});
  const std::vector<std::string> messages = {
      wandb_machine_message(1, 1700000003.5, {{"cpu", "12.5"}, {"gpu.0.gpu", "99.0"}}),
      wandb_alert_message(2, {"loss spike", "größer"}), wandb_artifact_message(3, run, artifact)};
  WandbBlocks blocks;
  std::string file = blocks.header();
  for (const std::string& message : messages) file += blocks.record(message);
  EXPECT_TRUE(file == text_of(std::string(TYCHO_SOURCE_DIR) + "/tests/golden/loggers/events.wandb"));
  // They can be read back.
  const auto machine = std::get<WandbSystemEntry>(read_wandb_entry(messages[0]));
  EXPECT_EQ(machine.time_s, 1700000003.5);
  EXPECT_EQ(machine.items.at(1).text, "99.0");
  const auto alert = std::get<WandbAlertEntry>(read_wandb_entry(messages[1]));
  EXPECT_EQ(alert.title + alert.text + alert.level, "loss spikegrößerWARN");
  const auto read = std::get<WandbArtifact>(read_wandb_entry(messages[2]));
  EXPECT_EQ(wandb_manifest(read), wandb_manifest(artifact));
  EXPECT_EQ(read.digest, artifact.digest);
  EXPECT_EQ(read.aliases, (std::vector<std::string>{"latest", "step-8"}));
}

TEST(WandbFile, AHistogramHasTheEdgesOfItsBins) {
  EXPECT_EQ(wandb_histogram({"w", -1, 1, {3, 0, 1, 2}}).text,
            R"({"_type":"histogram","values":[3,0,1,2],"bins":[-1.0,-0.5,0.0,0.5,1.0]})");
}

TEST(WandbFile, PadsABlockThatHasNoRoomForAnotherRecord) {
  for (size_t left = 0; left < 9; ++left) {
    WandbBlocks blocks;
    std::string file = blocks.header();
    file += blocks.record(std::string(32768 - 7 - 7 - left, 'x'));
    file += blocks.record(wandb_history_message(1, {{42, 0, {}}}, 0));
    EXPECT_EQ(last_step(file), 42) << left;
  }
}

// What wandb 0.31.0 wrote for wandb.Table with these columns and rows, and for its file.
TEST(WandbFile, ATableIsTheFileThatWandbWrites) {
  const NamedTable table = {"icl/words",
                            "icl_outputs.jsonl",
                            {"prompt", "right", "logprobs"},
                            {{{"prompt", "a b"}, {"right", true}, {"logprobs", "[1.0, 2.0]"}},
                             {{"logprobs", "x"}, {"prompt", "c"}, {"right", false}, {"other", 1}}}};
  const WandbTableFile file = wandb_table_file(table, 3);
  EXPECT_EQ(
      file.text,
      R"({"columns":["prompt","right","logprobs"],"data":[["a b",true,"[1.0, 2.0]"],["c",false,"x"]]})");
  EXPECT_EQ(file.path, "media/table/3_50e836cb015f48968192.table.json");
  EXPECT_EQ(file.in_row.name, "icl/words");
  EXPECT_EQ(Json::parse(file.in_row.text),
            Json::parse(R"({"_type": "table-file", "path": "media/table/3_50e836cb015f48968192.table.json",
    "sha256": "50e836cb015f48968192c6b084cb007c221bc2776da95b29c9d89e1ade7c6ad6", "size": 92, "ncols": 3,
    "nrows": 2})"));
  EXPECT_EQ(wandb_file_message(7, file.path), std::string("\x08\x07\x32\x31\x0a\x2f\x0a\x2d") + file.path);
}

TEST(WandbFile, FindsTheLastStepOfAFile) { EXPECT_EQ(last_step(golden()), 70000); }

TEST(WandbFile, ReadsADamagedFileAsFarAsItsChecksumsHold) {
  const std::string whole = golden();
  EXPECT_EQ(last_step(""), -1);
  EXPECT_EQ(last_step("no such file"), -1);
  EXPECT_EQ(last_step(whole.substr(0, 20)), -1);
  EXPECT_EQ(last_step(whole.substr(0, whole.size() - 100)), 1);
  for (size_t at = 0; at < 2000; ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    EXPECT_LE(last_step(damaged), 70000) << at;
    EXPECT_LE(last_step(whole.substr(0, at * 50)), 70000) << at;
  }
}

}  // namespace
}  // namespace tycho
