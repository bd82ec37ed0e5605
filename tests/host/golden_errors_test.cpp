// What people read when a recipe or a command line is wrong: tests/golden/errors holds one file per case,
// with the command, the files that it finds, and everything that it prints. To write the outputs anew after a
// change of wording:
//   TYCHO_UPDATE_GOLDENS=1 build/cpu/bin/golden_errors_test && git diff tests/golden/errors
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace tycho {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = TYCHO_SOURCE_DIR "/tests/golden/errors";

/// A case file: "$ COMMAND", then sections "== NAME" of files, the last of which is "== exit CODE" with the
/// output.
struct Case {
  std::string command;
  std::map<std::string, std::string> files;
  std::string exit;  // "exit 10"
  std::string output;
};

Case read_case(const fs::path& path) {
  std::ifstream file(path);
  Case result;
  std::string* section = nullptr;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("$ ") && section == nullptr) {
      result.command = line.substr(2);
    } else if (line.starts_with("== exit ")) {
      result.exit = line.substr(3);
      section = &result.output;
    } else if (line.starts_with("== ")) {
      section = &result.files[line.substr(3)];
    } else if (section != nullptr) {
      *section += line + "\n";
    }
  }
  return result;
}

void write_case(const fs::path& path, const Case& one) {
  std::ofstream file(path);
  file << "$ " << one.command << "\n";
  for (const auto& [name, text] : one.files) file << "== " << name << "\n" << text;
  file << "== " << one.exit << "\n" << one.output;
}

/// The hash of a recipe changes with every key that Tycho gains.
void hide_hashes(std::string& output) {
  constexpr size_t kDigits = 32;
  for (size_t at = 0; (at = output.find("hash ", at)) != std::string::npos;) {
    at += 5;
    const size_t end = std::min(output.find_first_not_of("0123456789abcdef", at), output.size());
    if (end - at == kDigits) output.replace(at, kDigits, "HASH");
  }
}

/// Runs the command in a folder of its own and fills in what came out.
void run_case(Case& one) {
  std::string name = (fs::temp_directory_path() / "tycho-golden-XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const fs::path folder = name;
  for (const auto& [file, text] : one.files) std::ofstream(folder / file) << text;
  const fs::path script = folder / ".command";
  std::ofstream(script) << "unset TYCHO_PATH\ntycho() { " TYCHO_PROGRAM " \"$@\"; }\n" << one.command << "\n";
  FILE* pipe = popen(("cd " + name + " && bash .command 2>&1").c_str(), "r");
  one.output.clear();
  std::array<char, 4096> buffer;
  for (size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) one.output.append(buffer.data(), n);
  const int status = pclose(pipe);
  one.exit = "exit " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  if (!one.output.ends_with('\n')) one.output += '\n';
  hide_hashes(one.output);
  fs::remove_all(folder);
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder)) names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class GoldenErrors : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenErrors, AreWorded) {
  const fs::path path = kFolder / (GetParam() + ".txt");
  const Case wanted = read_case(path);
  Case got = wanted;
  run_case(got);
  if (std::getenv("TYCHO_UPDATE_GOLDENS") != nullptr) return write_case(path, got);
  EXPECT_EQ(got.output, wanted.output) << wanted.command;
  EXPECT_EQ(got.exit, wanted.exit) << got.output;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenErrors, ::testing::ValuesIn(case_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tycho
