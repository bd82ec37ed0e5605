// Whole runs in this process: learning, stopping, resuming bit for bit, and what bad input gets.
#include "trainer/run/run.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/trainer/run/run_fixture.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/lock/run_lock.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

std::vector<int64_t> saved_steps(const std::string& run_dir) {
  std::vector<int64_t> steps;
  for (const CheckpointInfo& info : list_checkpoints(run_dir + "/checkpoints")) steps.push_back(info.step);
  return steps;
}

TEST_F(RunTest, LearnsAndRecordsEveryStep) {
  write_data(200, 16, 64);
  config_.max_duration = {60, DurationUnit::kBatch};
  EXPECT_EQ(run(), 0);
  const auto loss = losses();
  ASSERT_EQ(loss.size(), 60u);
  EXPECT_NEAR(loss.at(1), std::log(64.0), 0.15);  // small weights: near uniform
  EXPECT_LT(loss.at(60), 2.0);                    // steps of the walk are uniform over 3: log 3 = 1.1 at best
  const Json last = lines("metrics.jsonl").back();
  EXPECT_EQ(last.at("tokens"), 60 * 4 * 16);
  EXPECT_EQ(last.at("epoch"), 1);
  EXPECT_GT(last.at("tokens_per_s").get<double>(), 0);
  EXPECT_EQ(saved_steps(run_dir()).front(), 60);
  for (const char* name : {"recipe.json", "recipe.lua", "provenance.json", "env.json", "versions.json",
                           "events.jsonl", "log.txt"})
    EXPECT_TRUE(fs::exists(run_dir() + "/" + name)) << name;
}

TEST_F(RunTest, AdaptersLearnDataThatTheirModelHasNotSeen) {
  write_data(200, 16, 64);
  config_.max_duration = {20, DurationUnit::kBatch};
  ASSERT_EQ(run(), 0);
  std::get<LlamaConfig>(config_.model.value).weights = run_dir();
  config_.run_dir = dir_ / "adapters";
  config_.max_duration = {60, DurationUnit::kBatch};
  config_.model.lora = {.rank = 8};
  write_data(200, 16, 8);
  ASSERT_EQ(run(), 0);
  EXPECT_LT(losses().at(60), losses().at(1) - 0.3);  // 3.47 to 2.87 was seen
}

TEST_F(RunTest, PausedByUntilItSavesEvaluatesAndContinuesUnderTheScheduleOfTheWholeRun) {
  write_data(40, 16, 64);
  write_data(8, 16, 64, "val");
  MdsConfig held_out;
  held_out.local_dir = dir_ / "data", held_out.split = "val";
  config_.eval_data["val"].value = held_out;
  ASSERT_EQ(run(), 0);
  const auto whole = newest_tensors();
  const auto whole_losses = losses();
  fs::remove_all(run_dir());

  EXPECT_EQ(run("5ba"), 0);
  EXPECT_EQ(saved_steps(run_dir()).front(), 5);
  const std::vector<Json> events = lines("events.jsonl");
  EXPECT_EQ(events.back().at("text"),
            "paused after step 5 of 12, saved; the same command resumes from there");
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const Json& event) {
    return event.at("kind") == "eval" && event.at("step") == 5;
  }));
  EXPECT_EQ(run("0.5dur"), 0);
  EXPECT_EQ(saved_steps(run_dir()).front(), 6);
  EXPECT_EQ(run("6ba"), 0);  // there already
  EXPECT_EQ(run("99ba"), 0);
  EXPECT_EQ(newest_tensors(), whole);
  EXPECT_EQ(losses(), whole_losses);
}

TEST_F(RunTest, MicroBatchesDoNotChangeTheResult) {
  write_data(40, 16, 64);
  ASSERT_EQ(run(), 0);
  const auto two = losses();
  fs::remove_all(run_dir());
  config_.micro_batch = Duration{4, DurationUnit::kSample};
  ASSERT_EQ(run(), 0);
  for (const auto& [step, loss] : losses()) EXPECT_NEAR(loss, two.at(step), 1e-4 * loss) << step;
}

TEST_F(RunTest, ALastMicroBatchMayBeSmaller) {
  write_data(40, 16, 64);
  config_.global_batch = Duration{10, DurationUnit::kSample};
  std::map<double, std::map<int64_t, double>> found;
  for (const double micro : {10.0, 4.0, 3.0}) {  // 10; 4 + 4 + 2; 3 + 3 + 3 + 1
    fs::remove_all(run_dir());
    config_.micro_batch = Duration{micro, DurationUnit::kSample};
    ASSERT_EQ(run(), 0);
    found[micro] = losses();
  }
  ASSERT_FALSE(found[10].empty());
  for (const auto& [step, loss] : found[10]) {
    EXPECT_NEAR(found[4].at(step), loss, 1e-4 * loss) << step;
    EXPECT_NEAR(found[3].at(step), loss, 1e-4 * loss) << step;
  }
  EXPECT_EQ(lines("metrics.jsonl").back().at("samples"), 10 * found[10].rbegin()->first);
}

TEST_F(RunTest, AStopBeforeTheFirstStepSavesNothingAndCanResume) {
  write_data(40, 16, 64);
  stop_ = SIGUSR1;
  const Error error = run_error();
  EXPECT_EQ(static_cast<int>(error.code()), 128 + SIGUSR1);
  EXPECT_NE(std::string(error.what()).find("stopped by SIGUSR1 before the first step"), std::string::npos);
  EXPECT_TRUE(saved_steps(run_dir()).empty());
  stop_ = 0;
  EXPECT_EQ(run(), 0);
}

TEST_F(RunTest, AFinishedRunWithADifferentRecipeSaysWhatDiffersAndWhatToType) {
  write_data(40, 16, 64);
  ASSERT_EQ(run(), 0);
  const std::string recorded = read_file(run_dir() + "/recipe.json");
  const auto refused = [&](const std::string& differs) {
    const Error error = run_error();
    EXPECT_EQ(error.code(), ExitCode::kRecipe);
    const std::string text = error.what();
    for (const std::string& part :
         {std::string("nothing left to train: " + run_dir() + " is at step 12 of "), differs,
          std::string("max_duration=24ba"), std::string("resume=none"), std::string("run_name=NAME")})
      EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_EQ(read_file(run_dir() + "/recipe.json"), recorded) << "what was never trained is not recorded";
    EXPECT_FALSE(fs::exists(run_dir() + "/attempt-2"));
    EXPECT_EQ(saved_steps(run_dir()).front(), 12);
  };
  const TrainConfig before = config_;
  config_.optimizer.value = AdamWConfig{.lr = 2e-2};
  refused("optimizer.lr                 0.01 -> 0.02");
  config_ = before;
  config_.max_duration = {8, DurationUnit::kBatch};
  refused("max_duration                 \"12ba\" -> \"8ba\"");
  config_ = before;
  config_.eval_data["val"].value = config_.train_data.as<MdsConfig>();
  refused("eval_data.val");
  config_ = before;
  config_.log.every = {5, DurationUnit::kBatch};  // asks for nothing that is not there
  config_.threads = 1;
  EXPECT_EQ(run(), 0);
}

TEST_F(RunTest, ARunThatIsExtendedHasTheRecipeThatItNowFollows) {
  write_data(40, 16, 64);
  ASSERT_EQ(run(), 0);
  config_.max_duration = {15, DurationUnit::kBatch};
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(parse_json(read_file(run_dir() + "/recipe.json"), "test").at("max_duration"), "15ba");
  EXPECT_EQ(parse_json(read_file(run_dir() + "/attempt-1/recipe.json"), "test").at("max_duration"), "12ba");
}

TEST_F(RunTest, AFinishedRunStartedAgainIsDoneAtOnceAndALongerOneGoesOn) {
  write_data(40, 16, 64);
  ASSERT_EQ(run(), 0);
  const size_t records = lines("metrics.jsonl").size();
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(lines("metrics.jsonl").size(), records);
  EXPECT_EQ(lines("events.jsonl").back().at("text"),
            "done, nothing left to train: all 12 steps are done; a longer max_duration trains on");
  config_.max_duration = {15, DurationUnit::kBatch};
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(losses().rbegin()->first, 15);
}

TEST_F(RunTest, AJobThatKeepsDyingAtOneStepIsNotStartedAgain) {
  write_data(40, 16, 64);
  ASSERT_EQ(run("2ba"), 0);
  const std::string events = run_dir() + "/events.jsonl";
  for (int start = 0; start < 3; ++start)  // killed without a word
    std::ofstream(events, std::ios::app) << R"({"kind":"run_start","facts":{"first_step":2}})"
                                         << "\n";
  const size_t num_lines = lines("events.jsonl").size();
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kNoProgress);
  EXPECT_NE(std::string(error.what()).find("was started 3 times from step 2"), std::string::npos)
      << error.what();
  EXPECT_EQ(lines("events.jsonl").size(), num_lines + 1);
  EXPECT_EQ(run_error().code(), ExitCode::kNoProgress) << "that a start was refused is no progress";
  std::ofstream(events, std::ios::app) << R"({"kind":"run_end","facts":{"exit_code":14}})"
                                       << "\n";
  EXPECT_EQ(run(), 0) << "somebody has looked at it";
}

TEST_F(RunTest, ResumeNoneStartsOver) {
  write_data(40, 16, 64);
  ASSERT_EQ(run(), 0);
  const auto first = newest_tensors();
  config_.resume = "none";
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(newest_tensors(), first);  // the same run again
}

TEST_F(RunTest, ResumeTakesANamedCheckpoint) {
  write_data(40, 16, 64);
  ASSERT_EQ(run(), 0);
  const auto whole = newest_tensors();
  std::string step4;
  for (const CheckpointInfo& info : list_checkpoints(run_dir() + "/checkpoints"))
    if (info.step == 4) step4 = info.path;
  config_.resume = step4;
  config_.run_dir = dir_ / "other";
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(newest_tensors(), whole);
}

TEST_F(RunTest, UnreadableCheckpointsAreAnErrorNotAFreshStart) {
  write_data(40, 16, 64);
  ASSERT_EQ(run(), 0);
  for (const CheckpointInfo& info : list_checkpoints(run_dir() + "/checkpoints"))
    fs::resize_file(info.path + "/rank-00000.safetensors", 100);
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kUnusable) << error.what();
  EXPECT_NE(std::string(error.what()).find("resume=none"), std::string::npos);
}

TEST_F(RunTest, ACheckpointOfAnotherModelIsRefusedWithATable) {
  write_data(40, 16, 64);
  ASSERT_EQ(run(), 0);
  LlamaConfig model = config_.model.as<LlamaConfig>();
  model.ffn_width = 96;
  config_.model.value = model;
  config_.max_duration = {20, DurationUnit::kBatch};
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kUnusable);
  EXPECT_NE(std::string(error.what()).find("model.layers.0.mlp.gate_proj.weight: expected F32 [96, 32]"),
            std::string::npos)
      << error.what();
}

TEST_F(RunTest, ASecondStartInAFolderThatALiveRunOwnsIsRefused) {
  write_data(40, 16, 64);
  fs::create_directories(run_dir());
  const pid_t owner = fork();
  if (owner == 0) {
    const RunLock lock(real_files(), run_dir());
    pause();
    _exit(0);
  }
  while (!fs::exists(run_dir() + "/LOCK")) usleep(1000);
  usleep(50000);
  const Error error = run_error();
  kill(owner, SIGKILL);
  EXPECT_EQ(error.code(), ExitCode::kFolderOwned) << error.what();
  EXPECT_NE(std::string(error.what()).find(std::to_string(owner)), std::string::npos) << error.what();
}

TEST_F(RunTest, ALossThatIsNotANumberStopsWithNothingLost) {
  write_data(40, 16, 64);
  config_.optimizer.value = AdamWConfig{.lr = 1e30};
  config_.scheduler.value = LinearConfig{{.t_warmup = {12, DurationUnit::kBatch}}};
  config_.ckpt.every = {1, DurationUnit::kBatch};
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kNumerics) << error.what();
  EXPECT_NE(std::string(error.what()).find("optimizer.lr"), std::string::npos);
  EXPECT_EQ(lines("events.jsonl").back()["facts"]["exit_code"], 14);
  for (const CheckpointInfo& info : list_checkpoints(run_dir() + "/checkpoints"))
    EXPECT_NO_THROW(CheckpointReader(info).verify());
}

TEST_F(RunTest, ABadStepIsSkippedWhenTheRecipeSaysSo) {
  write_data(60, 16, 64);
  ASSERT_EQ(run(), 0);
  std::vector<double> norms;
  for (const Json& line : lines("metrics.jsonl")) norms.push_back(line.at("grad_norm").get<double>());
  std::sort(norms.begin(), norms.end());
  ASSERT_GE(norms.size(), 4u);
  config_.guard = {GuardAction::kSkip, (norms[norms.size() - 2] + norms.back()) / 2, 10};
  config_.resume = "none";
  config_.run_dir += "-guarded";
  ASSERT_EQ(run(), 0);
  int64_t skipped = 0;
  for (const Json& line : lines("events.jsonl"))
    if (line.at("kind") == "warning" && line.at("facts").contains("skipped"))
      skipped = line["facts"]["skipped"];
  EXPECT_GE(skipped, 1);
  EXPECT_EQ(list_checkpoints(run_dir() + "/checkpoints")
                .front()
                .manifest.at("train_state")
                .at("skipped")
                .at("total"),
            skipped);
}

TEST_F(RunTest, TooManySkippedStepsInARowEndTheRunWithTheFirstWeights) {
  write_data(60, 16, 64);
  config_.guard = {GuardAction::kSkip, 1e-9, 3};
  config_.ckpt.every = {1, DurationUnit::kBatch};
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kNumerics);
  EXPECT_NE(std::string(error.what()).find("after 3 skipped steps in a row at step 4"), std::string::npos)
      << error.what();
  config_.guard = {GuardAction::kStop, 1e-9};
  config_.resume = "none";
  config_.run_dir += "-stopped";
  const Error stopped = run_error();
  EXPECT_EQ(stopped.code(), ExitCode::kNumerics);
  EXPECT_NE(std::string(stopped.what()).find(", above guard.max_grad_norm = 1e-09, at step 1"),
            std::string::npos)
      << stopped.what();
}

TEST_F(RunTest, AMissingDataFolderIsNamed) {
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kUnusable);
  EXPECT_NE(std::string(error.what()).find(dir_ / "data/train"), std::string::npos) << error.what();
}

TEST_F(RunTest, ADamagedShardIsNamed) {
  write_data(40, 16, 64);
  {
    std::fstream shard(dir_ / "data/train/shard.00000.mds", std::ios::in | std::ios::out | std::ios::binary);
    shard.seekp(-3, std::ios::end);
    shard.put('\x7f');
  }
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kUnusable) << error.what();
  EXPECT_NE(std::string(error.what()).find("shard.00000.mds"), std::string::npos) << error.what();
}

TEST_F(RunTest, SequencesLongerThanTheDataAreRefused) {
  write_data(40, 16, 64);
  config_.seq_len = 32;
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kUnusable) << error.what();
  EXPECT_NE(std::string(error.what()).find("seq_len"), std::string::npos);
}

TEST_F(RunTest, SequencesLongerThanTheModelAreRefused) {
  write_data(40, 16, 64);
  LlamaConfig model = config_.model.as<LlamaConfig>();
  model.max_seq_len = 8;
  config_.model.value = model;
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kRecipe) << error.what();
  EXPECT_NE(std::string(error.what()).find("max_seq_len"), std::string::npos);
}

TEST_F(RunTest, AnUnwritableRunFolderIsNamed) {
  write_data(40, 16, 64);
  std::ofstream(dir_ / "file") << "not a folder";
  config_.run_dir = dir_ / "file/run";
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kStorage) << error.what();
  EXPECT_NE(std::string(error.what()).find(dir_ / "file"), std::string::npos) << error.what();
}

TEST_F(RunTest, AFullDiskStopsTheRunAndKeepsWhatWasCommitted) {
  write_data(40, 16, 64);
  const std::string disk = dir_ / "disk";
  fs::create_directories(disk);
  if (geteuid() != 0 ||
      std::system(("mount -t tmpfs -o size=900k tmpfs " + disk + " 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << "needs root to mount a small tmpfs";
  config_.run_dir = disk + "/run";
  config_.ckpt.every = {1, DurationUnit::kBatch};
  config_.ckpt.max_lost = {0.5, DurationUnit::kSecond};
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kStorage) << error.what();
  const auto committed = list_checkpoints(run_dir() + "/checkpoints");
  EXPECT_FALSE(committed.empty());
  for (const CheckpointInfo& info : committed) EXPECT_NO_THROW(CheckpointReader(info).verify());
  EXPECT_EQ(std::system(("umount -l " + disk).c_str()), 0);
}

}  // namespace
}  // namespace tycho
