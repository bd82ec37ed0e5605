// Runs that are stopped and go on: the same numbers, to the bit.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/trainer/run/one_callback.h"
#include "tests/trainer/run/run_fixture.h"
#include "trainer/base/field_types.h"
#include "trainer/base/file_ops.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// Sends a run SIGTERM after a step, as a scheduler would.
OneCallback stop_at(int64_t step, std::atomic<int>& stop) {
  return {{Event::kBatchEnd}, [step, &stop](const EventInfo& info, CallbackPort&, Json&) {
            if (info.metrics.step == step) stop = SIGTERM;
          }};
}

class ResumeTest : public RunTest, public testing::WithParamInterface<Precision> {};

TEST_P(ResumeTest, StoppedAndResumedEqualsUninterruptedBitForBit) {
  write_data(40, 16, 64);  // ten steps an epoch: the run crosses into the next
  config_.precision = GetParam();
  ASSERT_EQ(run(), 0);
  const auto whole = newest_tensors();
  const auto whole_losses = losses();
  fs::remove_all(run_dir());

  // Signals arrive at steps that no checkpoint interval names.
  for (const int64_t step : {3, 7}) {
    OneCallback stop = stop_at(step, stop_);
    callbacks_ = &stop;
    EXPECT_EQ(run(), 143);
    EXPECT_EQ(losses().rbegin()->first, step);
    callbacks_ = nullptr;
    stop_ = 0;
  }
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(newest_tensors(), whole);
  EXPECT_EQ(losses(), whole_losses);
  std::vector<int64_t> resumed_at;
  for (const Json& event : lines("events.jsonl"))
    if (event.at("kind") == "resume") resumed_at.push_back(event.at("facts").at("step"));
  EXPECT_EQ(resumed_at, (std::vector<int64_t>{3, 7}));
}

// The order of a large epoch is not drawn again: the checkpoint knows where its generator stood.
TEST_P(ResumeTest, ALargeEpochGoesOnAtTheMarksOfItsOrder) {
  write_data(4096, 16, 64);
  const std::string index = dir_ / "data/train/index.json";
  Json json = parse_json(read_file(index), index);
  json["shards"] = Json(260, json.at("shards")[0]);  // a million samples, in a small folder
  std::ofstream(index) << json.dump();
  config_.precision = GetParam();
  auto& data = std::get<MdsConfig>(config_.train_data.value);
  for (const ShuffleAlgo algo : {ShuffleAlgo::kPy1e, ShuffleAlgo::kPy2s}) {
    SCOPED_TRACE(enum_name(algo));
    data.shuffle_algo = algo;
    config_.resume = "auto";
    ASSERT_EQ(run(), 0);
    const auto whole = newest_tensors();
    const auto marks = [&] {
      return find_checkpoint(run_dir()).manifest.at("train_state").at("data").at("order_marks");
    };
    const Json whole_marks = marks();
    EXPECT_EQ(whole_marks.size(), 1u);
    fs::remove_all(run_dir());
    ASSERT_EQ(run("5ba"), 0);
    EXPECT_EQ(marks(), whole_marks);
    ASSERT_EQ(run(), 0);
    EXPECT_EQ(newest_tensors(), whole);
    EXPECT_EQ(marks(), whole_marks);
    fs::remove_all(run_dir());
  }
}

TEST_P(ResumeTest, AdaptersGoOnBitForBitOverTheModelThatTheyAreFor) {
  write_data(40, 16, 64);
  config_.precision = GetParam();
  config_.max_duration = {2, DurationUnit::kBatch};
  ASSERT_EQ(run(), 0);
  std::get<LlamaConfig>(config_.model.value).weights = run_dir();
  config_.max_duration = {12, DurationUnit::kBatch};
  config_.run_dir = dir_ / "adapters";
  config_.model.lora = {.rank = 2, .alpha = 4, .dropout = 0.1, .targets = {"q_proj", "mlp..*"}};
  ASSERT_EQ(run(), 0);
  const auto whole = newest_tensors();
  for (const auto& [name, bytes] : whole) EXPECT_NE(name.find(".lora_"), std::string::npos) << name;
  EXPECT_EQ(whole.size(), 3U * 2 * 2 * 4) << "A and B with two moments each, of four layers in two blocks";
  fs::remove_all(run_dir());

  EXPECT_EQ(run("5ba"), 0);
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(newest_tensors(), whole);

  fs::remove_all(run_dir() + "/checkpoints");
  fs::rename(dir_ / "run", dir_ / "moved");
  config_.resume = "none";
  const Error lost = run_error();
  EXPECT_EQ(lost.code(), ExitCode::kUnusable) << lost.what();
  EXPECT_NE(std::string(lost.what()).find(dir_ / "run"), std::string::npos) << lost.what();
}

TEST_P(ResumeTest, ADamagedNewestCheckpointFallsBackToTheOlderAndSaysSo) {
  write_data(40, 16, 64);
  config_.precision = GetParam();
  ASSERT_EQ(run(), 0);
  const auto whole = newest_tensors();
  const CheckpointInfo newest = find_checkpoint(run_dir());
  {
    std::fstream shard(newest.path + "/rank-00000.safetensors",
                       std::ios::in | std::ios::out | std::ios::binary);
    shard.seekg(-1, std::ios::end);
    const int last = shard.get();
    shard.seekp(-1, std::ios::end);
    shard.put(static_cast<char>(last ^ 1));
  }
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(newest_tensors(), whole);  // went back to step 8 and came to the same end
  std::string events;
  for (const Json& event : lines("events.jsonl")) events += event.dump() + "\n";
  EXPECT_NE(events.find("step 12 cannot be read, using an older one"), std::string::npos) << events;
  EXPECT_NE(events.find(newest.path + "/rank-00000.safetensors is damaged"), std::string::npos) << events;
  EXPECT_NE(events.find("resumed from step 8"), std::string::npos) << events;
}

INSTANTIATE_TEST_SUITE_P(Precisions, ResumeTest, testing::Values(Precision::kFp32, Precision::kBf16));

}  // namespace
}  // namespace tycho
