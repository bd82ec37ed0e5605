// A run that is started again with something else: what counts, what goes on, and what is left of a refused
// start.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <map>
#include <numbers>

#include "tests/trainer/run/one_callback.h"
#include "tests/trainer/run/run_fixture.h"
#include "trainer/base/file_ops.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

using SecondStartTest = RunTest;

TEST_F(SecondStartTest, AStartThatEndsBeforeItsFirstStepLeavesOneLineAndNoRecord) {
  write_data(40, 16, 64);
  config_.log.sinks.push_back({CsvSinkConfig()});
  ASSERT_EQ(run("10ba"), 0);
  fs::remove_all(list_checkpoints(run_dir() + "/checkpoints").front().path);  // a start goes back to step 8
  const TrainConfig accepted = config_;
  const auto count_lines = [&](const char* name) {
    const std::string text = read_file(run_dir() + "/" + name);
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto all_but_logs = [&] {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(run_dir()))
      if (entry.is_regular_file() && !entry.path().filename().string().starts_with("LOCK"))
        files[entry.path()] = read_file(entry.path().string());
    for (const char* name : {"log.txt", "events.jsonl"}) files.erase(run_dir() + "/" + name);
    return files;
  };
  const auto before = all_but_logs();
  const auto refused = [&](int code, const std::string& reason) {
    const auto events = count_lines("events.jsonl"), log = count_lines("log.txt");
    EXPECT_EQ(static_cast<int>(run_error().code()), code);
    EXPECT_EQ(count_lines("events.jsonl"), events + 1) << reason;
    EXPECT_EQ(count_lines("log.txt"), log + 1) << reason;
    const Json last = lines("events.jsonl").back();
    EXPECT_EQ(last.at("kind"), "not_started");
    EXPECT_EQ(last.at("facts").at("exit_code"), code);
    EXPECT_NE(last.at("text").get<std::string>().find(reason), std::string::npos) << last;
    EXPECT_TRUE(all_but_logs() == before) << reason;
    config_ = accepted;
  };
  LlamaConfig& model = std::get<LlamaConfig>(config_.model.value);
  model.ffn_width = 96;
  refused(12, "model.layers.0.mlp.gate_proj.weight: expected F32 [96, 32], got F32 [64, 32]");
  std::get<LlamaConfig>(config_.model.value).weights = dir_ / "missing";
  refused(12, "missing");
  config_.seq_len = 32;
  refused(12, "32");
  config_.resume = dir_ / "nothing";
  refused(12, "nothing");
  stop_ = SIGUSR1;
  refused(128 + SIGUSR1, "before the first step");
  stop_ = 0;
  config_.seed = 5;
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(parse_json(read_file(run_dir() + "/recipe.json"), "test").at("seed"), 5);
  EXPECT_EQ(parse_json(read_file(run_dir() + "/attempt-1/recipe.json"), "test").at("seed"), accepted.seed);
  EXPECT_FALSE(fs::exists(run_dir() + "/attempt-3"));
  EXPECT_EQ(lines("metrics.jsonl").back().at("step"), 12);
}

TEST_F(SecondStartTest, TheMisfitsOfACheckpointAreThreeAndACount) {
  write_data(40, 16, 64);
  ASSERT_EQ(run("4ba"), 0);
  std::get<LlamaConfig>(config_.model.value).width = 64;
  const std::string text = run_error().what();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5) << text;
  // An embedding, a norm at the end, and of each of two layers two norms and seven matrices.
  EXPECT_NE(text.find("\n  and 17 more\nUse the recipe"), std::string::npos) << text;
}

/// Commands at the end of the second step.
OneCallback commands_at_two(std::vector<Command> commands) {
  return {{Event::kBatchEnd}, [commands](const EventInfo& info, CallbackPort& port, Json&) {
            if (info.metrics.step == 2) port.commands = commands;
          }};
}

TEST_F(SecondStartTest, AnotherValueOfAKeyEndsTheCommandThatPinnedIt) {
  write_data(40, 16, 64);
  config_.scheduler.value = ConstantConfig();
  OneCallback commands =
      commands_at_two({make_command("set_lr", {5e-3}, {}, ""), make_command("set_clip", {0.5}, {}, ""),
                       make_command("set_weight_decay", {0.3}, {}, "")});
  callbacks_ = &commands;
  ASSERT_EQ(run("4ba"), 0);
  callbacks_ = nullptr;
  const auto rate_of = [&](int64_t step) {
    double lr = -1;
    for (const Json& line : lines("metrics.jsonl"))
      if (line.value("step", 0) == step && line.contains("lr")) lr = line.at("lr");
    return lr;
  };
  const auto notes = [&] {
    std::string text;
    for (const Json& event : lines("events.jsonl"))
      if (event.at("kind") == "warning") text += event.at("text").get<std::string>() + "\n";
    return text;
  };
  EXPECT_EQ(rate_of(4), 5e-3);
  ASSERT_EQ(run("6ba"), 0);
  EXPECT_EQ(rate_of(6), 5e-3) << "nothing else was asked for";
  EXPECT_NE(notes().find("set_lr(0.005) by x still holds, instead of optimizer.lr = 0.01 of the recipe"),
            std::string::npos)
      << notes();
  EXPECT_NE(notes().find("set_clip(0.5) still holds"), std::string::npos) << notes();
  EXPECT_EQ(notes().find("has ended"), std::string::npos) << notes();

  config_.optimizer.value = AdamWConfig{.lr = 1e-4};
  ASSERT_EQ(run("8ba"), 0);
  EXPECT_EQ(rate_of(8), 1e-4);
  EXPECT_NE(notes().find("set_lr(0.005) by x has ended: optimizer.lr was 0.01 and is 0.0001 now"),
            std::string::npos)
      << notes();
  EXPECT_EQ(notes().find("set_clip(0.5) has ended"), std::string::npos) << notes();
  config_.optimizer.value = AdamWConfig{.lr = 1e-2};
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(rate_of(12), 1e-2) << "a command that has ended does not come back";
  const TrainState state = TrainState::from_json(find_checkpoint(run_dir()).manifest.at("train_state"));
  EXPECT_EQ(state.controls.clip_norm, 0.5);
  EXPECT_EQ(state.controls.weight_decay, 0.3);
  EXPECT_FALSE(state.controls.lr);
}

class ChangedBatchTest : public RunTest {
 protected:
  ChangedBatchTest() {
    write_data(80, 16, 64);
    config_.max_duration = Duration::parse("1536tok");  // 24 steps of 4 samples, or 12 of 8
    config_.ckpt.every = Duration::parse("512tok");
    CosineConfig cosine;
    cosine.t_warmup = Duration::parse("256tok");
    config_.scheduler.value = cosine;
  }
  void set_batch(double samples) { config_.global_batch = {samples, DurationUnit::kSample}; }

  /// The rates are those of a run that has done as many tokens, and it ends after 1,536.
  void expect_course_of_tokens() {
    int64_t done = 0;
    for (const Json& line : lines("metrics.jsonl")) {
      if (!line.contains("lr")) continue;
      const auto tokens = line.at("tokens").get<int64_t>();
      const double course = static_cast<double>(done - 256) / (1536 - 256);
      const double factor =
          done < 256 ? static_cast<double>(tokens) / 256 : 0.5 * (1 + std::cos(std::numbers::pi * course));
      EXPECT_NEAR(line.at("lr").get<double>(), 1e-2 * factor, 1e-12) << line;
      done = tokens;
    }
    EXPECT_EQ(done, 1536);
  }
  std::vector<int64_t> saved_steps() const {
    std::vector<int64_t> steps;
    for (const CheckpointInfo& info : list_checkpoints(run_dir() + "/checkpoints"))
      steps.push_back(info.step);
    return steps;
  }
};

TEST_F(ChangedBatchTest, ALargerBatchGoesOnFromTheTokensThatAreDone) {
  ASSERT_EQ(run("8ba"), 0);
  set_batch(8);
  ASSERT_EQ(run(), 0);
  expect_course_of_tokens();
  EXPECT_EQ(saved_steps(), (std::vector<int64_t>{16, 12, 8})) << "512, 1,024 and 1,536 tokens";
}

TEST_F(ChangedBatchTest, ASmallerBatchGoesOnFromTheTokensThatAreDone) {
  set_batch(8);
  ASSERT_EQ(run("4ba"), 0);
  set_batch(4);
  ASSERT_EQ(run("1024tok"), 0);
  EXPECT_EQ(saved_steps().front(), 12);
  ASSERT_EQ(run(), 0);
  expect_course_of_tokens();
  EXPECT_EQ(saved_steps(), (std::vector<int64_t>{20, 12, 4}));
}

TEST_F(ChangedBatchTest, ResumesToTheSameBitsAfterTheChange) {
  ASSERT_EQ(run("8ba"), 0);
  set_batch(8);
  ASSERT_EQ(run(), 0);
  const auto whole = newest_tensors();
  for (const CheckpointInfo& info : list_checkpoints(run_dir() + "/checkpoints"))
    if (info.step > 8) fs::remove_all(info.path);
  ASSERT_EQ(run("10ba"), 0);
  ASSERT_EQ(run("13ba"), 0);
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(newest_tensors(), whole);
  EXPECT_EQ(lines("metrics.jsonl").back().at("tokens"), 1536);
}

}  // namespace
}  // namespace tycho
