// A folder with a recipe, the program and an engine that pretends to train: sweeps as people start them.
#pragma once
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "tests/host/shell.h"
#include "trainer/base/json.h"

namespace tycho {

class SweepTest : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    std::filesystem::create_directories(folder_ / "bin");
    std::filesystem::create_directories(folder_ / "lib");
    std::filesystem::copy_file(TYCHO_PROGRAM, folder_ / "bin/tycho");
    std::filesystem::copy_file(TYCHO_SWEEP_ENGINE, folder_ / "lib/libtycho_engine.so");
    write(whole("r.max_duration = \"20ba\"\n"), "recipe.lua");
  }

  /// A sweep of recipe.lua with these lines.
  static std::string sweep(const std::string& lines) {
    return "local t = require \"tycho\"\nlocal s = t.sweep \"s\"\ns.recipe = \"recipe.lua\"\ns.metric.name = "
           "\"loss\"\n"
           "s.heartbeat = \"0.2s\"\n" +
           lines + "return s\n";
  }
  Outcome run(const std::string& arguments) const { return here("./bin/tycho " + arguments); }

  /// `tycho sweep ...` in the background, its output in <log>.
  pid_t start(const std::vector<std::string>& arguments, const std::string& log = "log") const {
    fflush(stdout);  // or the child would print it again
    const pid_t child = fork();
    if (child != 0) return child;
    if (chdir(folder_.c_str()) != 0 || freopen(log.c_str(), "a", stdout) == nullptr) _exit(97);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    std::vector<char*> argv = {const_cast<char*>("tycho")};
    for (const std::string& one : arguments) argv.push_back(const_cast<char*>(one.c_str()));
    argv.push_back(nullptr);
    execv("./bin/tycho", argv.data());
    _exit(98);
  }
  static int finish(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  static bool wait_for(const std::function<bool()>& holds) {
    for (int i = 0; i < 2000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  Json table(const std::string& name = "s") const {
    const Outcome shown = run("sweep table --json " + name);
    EXPECT_EQ(shown.code, 0) << shown.output;
    return Json::parse(shown.output);
  }
  std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string run_dir(const Json& trial, const std::string& name = "s") const {
    char number[16];
    snprintf(number, sizeof number, "%04d", trial.at("trial").get<int>());
    return "sweeps/" + name + "/trials/" + number + "-" + trial.at("id").get<std::string>();
  }
  /// Returns true once a trial has done its first step.
  bool has_trained(const std::string& name = "s") const {
    std::error_code none;
    for (const auto& trial : std::filesystem::directory_iterator(folder_ / "sweeps" / name / "trials", none))
      if (std::filesystem::exists(trial.path() / "steps.txt", none)) return true;
    return false;
  }
  static std::set<std::string> states(const Json& table) {
    std::set<std::string> found;
    for (const Json& trial : table.at("trials")) found.insert(trial.at("state"));
    return found;
  }
};

}  // namespace tycho
