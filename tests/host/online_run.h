// A run that reports to W&B, in a folder with its recipe, and the server that it reports to.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/trainer/loggers/wandb_stand_in.h"

namespace tycho {

namespace fs = std::filesystem;

inline constexpr const char* kWandbKey = "0123456789012345678901234567890123456789";

/// A process that others kill.
class Victim {
 public:
  /// Starts a command of the shell.
  void start(const std::string& command) {
    const char* const words[] = {"sh", "-c", command.c_str(), nullptr};
    pid_t child = 0;
    EXPECT_EQ(::posix_spawn(&child, "/bin/sh", nullptr, nullptr, const_cast<char**>(words), environ), 0);
    pid_ = child;
  }
  /// Kills it, once it has been started. Callable from any thread.
  void strike(int number = SIGKILL) const {
    while (pid_ == 0) std::this_thread::yield();
    ::kill(pid_, number);
  }
  /// Returns how it ended, when it has.
  std::optional<int> ended(bool waits) {
    int status = -1;
    if (::waitpid(pid_, &status, waits ? 0 : WNOHANG) != pid_) return std::nullopt;
    pid_ = 0;
    return status;
  }

 private:
  std::atomic<pid_t> pid_ = 0;
};

inline std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// A run of tiny.lua in a folder, and its server.
class OnlineRun {
 public:
  using Fate = testing::WandbStandIn::Fate;

  /// `variables` are set for it, as a shell takes them: "A=1 B=2".
  OnlineRun(const fs::path& folder, std::string name, std::string variables = "")
      : server(folder),
        folder_(folder),
        name_(std::move(name)),
        variables_(std::move(variables)),
        dir_(folder / "runs" / name_) {}

  /// Starts the program until a step.
  void start(int last_step) {
    last_step_ = last_step;
    process.start(
        fmt::format("cd {} && {} exec {} run tiny.lua run_name={} max_duration={}ba --force >{}.txt 2>&1",
                    folder_.string(), variables(), TYCHO_PROGRAM, name_, last_step_, name_));
  }

  /// Waits for its end. Returns true when it was killed, false when it ended well.
  bool is_killed() {
    const int status = *process.ended(/*waits=*/true);
    const bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    EXPECT_TRUE(is_killed || status == 0) << status << output();
    return is_killed;
  }

  /// Returns the variables of its processes.
  std::string variables() const {
    return fmt::format("WANDB_BASE_URL={} WANDB_API_KEY={} no_proxy=127.0.0.1 {}", server.url(), kWandbKey,
                       variables_);
  }
  std::string output() const { return text_of(folder_ / (name_ + ".txt")); }
  const fs::path& dir() const { return dir_; }
  int last_step() const { return last_step_; }

  /// Step of the newest checkpoint.
  int saved_step() const {
    int step = 0;
    if (!fs::exists(dir_ / "checkpoints")) return 0;
    for (const auto& save : fs::directory_iterator(dir_ / "checkpoints"))
      if (fs::exists(save.path() / "COMMIT"))
        step = std::max(step, std::stoi(save.path().filename().string().substr(5)));
    return step;
  }

  /// Compares what the server has with the files of the run.
  void expect_all_once() {
    const testing::StoredRun run = server.run();
    expect_rows(run);
    expect_console(run);
    const Json recipe = Json::parse(text_of(dir_ / "recipe.json"));
    for (const auto& [key, value] : recipe.items())
      EXPECT_EQ(run.config.value(key, Json::object()).value("value", Json()), value) << key;
    EXPECT_EQ(run.tags, Json({"a"}));
    ASSERT_FALSE(run.exit_codes.empty());
    EXPECT_EQ(run.exit_codes.back(), 0);
    ASSERT_FALSE(run.artifacts.empty());
    for (const Json& artifact : run.artifacts) EXPECT_EQ(artifact.at("state"), "COMMITTED");
    const std::string newest = fmt::format("step-{}", last_step_);
    EXPECT_NE(run.artifacts.back().at("aliases").dump().find(newest), std::string::npos);
    EXPECT_EQ(server.unknown(), std::vector<std::string>());
  }

 private:
  void expect_rows(const testing::StoredRun& run) const {
    std::map<int, Json> wanted;  // a step that was done again has the same bits
    for (const std::string& line : lines_of(dir_ / "metrics.jsonl")) {
      Json row = Json::parse(line);
      const int step = row.at("step");
      wanted[step] = std::move(row);
    }
    ASSERT_EQ(static_cast<int>(run.history.size()), last_step_);
    ASSERT_EQ(static_cast<int>(wanted.size()), last_step_);
    for (int step = 1; step <= last_step_; ++step) {
      const std::string& text = run.history[static_cast<size_t>(step - 1)];
      const Json row = Json::parse(text, nullptr, /*allow_exceptions=*/false);
      ASSERT_TRUE(row.is_object()) << text;
      EXPECT_EQ(row.at("_step"), step);
      EXPECT_EQ(row.at("loss"), wanted[step].at("loss"));
    }
    const Json summary = Json::parse(run.summary);
    EXPECT_EQ(summary.at("loss"), wanted[last_step_].at("loss"));
    EXPECT_EQ(Json::parse(run.files.at("wandb-summary.json")).at("loss"), summary.at("loss"));
    double last_s = 0;
    for (const std::string& line : run.events) {
      const Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      ASSERT_TRUE(event.is_object()) << line;
      EXPECT_GT(event.at("_timestamp"), last_s);
      last_s = event.at("_timestamp");
    }
  }

  // Times are local in log.txt and in UTC on the server.
  void expect_console(const testing::StoredRun& run) const {
    constexpr size_t kTimeBytes = 19, kUtcBytes = 26;
    const std::vector<std::string> lines = lines_of(dir_ / "log.txt");
    ASSERT_EQ(run.console.size(), lines.size());
    for (size_t i = 0; i < lines.size(); ++i)
      EXPECT_EQ(run.console[i].substr(kUtcBytes), lines[i].substr(kTimeBytes));
  }

 public:
  testing::WandbStandIn server;
  Victim process;

 private:
  fs::path folder_;
  std::string name_, variables_;
  fs::path dir_;
  int last_step_ = 0;
};

}  // namespace tycho
