// Runs the program as a person does: a shell command in a folder, and what came out.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/host/default_signals.h"

namespace tycho {

struct Outcome {
  int code = -1;
  std::string output;  // stdout and stderr together
};

/// Runs a command of the shell `program` with `tycho` standing for the program under test.
inline Outcome shell(const std::string& command, const std::string& program = "sh") {
  std::string quoted;
  for (const char c : "tycho() { " TYCHO_PROGRAM " \"$@\"; }; { " + command + " ; } 2>&1")
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  FILE* pipe = popen((program + " -c '" + quoted + "'").c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> buffer;
  for (size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    outcome.output.append(buffer.data(), n);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

/// A test with an empty folder of its own.
class ShellTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "tycho-cli-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Puts the program and another engine into the folder, as an installed tree has them.
  void install(const char* engine) const {
    for (const char* part : {"bin", "lib"}) std::filesystem::create_directories(folder_ / part);
    std::filesystem::copy_file(TYCHO_PROGRAM, folder_ / "bin/tycho");
    std::filesystem::copy_file(engine, folder_ / "lib/libtycho_engine.so");
  }
  /// Writes a file of the folder, x.lua by default, and gives its path.
  std::string write(const std::string& text, const std::string& name = "x.lua") const {
    const std::filesystem::path file = folder_ / name;
    std::ofstream(file) << text;
    return file.string();
  }
  /// A recipe with everything that is required, and these lines.
  static std::string whole(const std::string& lines = "") {
    return "local t = require \"tycho\"\nlocal r = t.recipe \"x\"\nr.max_duration = \"10ba\"\n"
           "r.model = t.model.llama { width = 64, heads = 4, layers = 2, ffn_width = 128 }\n"
           "r.optimizer = t.optim.adamw { lr = 1e-3 }\nr.train_data = t.data.mds { local_dir = \"data\" }\n" +
           lines + "return r\n";
  }
  /// shell() in the folder.
  Outcome here(const std::string& command, const std::string& program = "sh") const {
    return shell("cd " + folder_.string() + " && " + command, program);
  }

  std::filesystem::path folder_;
};

}  // namespace tycho
