// tycho test: runs Lua spec files.
#include <algorithm>
#include <filesystem>

#include "host/signals.h"
#include "host/verb.h"

namespace tycho {

const VerbSpec kTestSpec = {"test FILE_OR_FOLDER ...",
                            "Runs Lua specs (files named *_spec.lua).",
                            "  tycho test tests/lua",
                            {kJsonOption, kTraceOption}};

namespace {

std::vector<std::string> spec_files(const std::vector<std::string>& words) {
  std::vector<std::string> files;
  for (const std::string& one : words) {
    if (!std::filesystem::exists(one)) fail(ExitCode::kUsage, "[tycho test] no file or folder {}", one);
    if (!std::filesystem::is_directory(one)) {
      files.push_back(one);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(one)) {
      if (entry.path().string().ends_with("_spec.lua")) files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int run_test(const Arguments& arguments) {
  word(arguments, 0, "a spec file or a folder");
  const std::vector<std::string> files = spec_files(arguments.words);
  if (files.empty()) fail(ExitCode::kUsage, "[tycho test] no *_spec.lua there");
  const InterruptLua interruptible;
  const SpecCounts counts = run_specs(files, arguments.has("trace"));
  if (arguments.has("json")) {
    fmt::print("{}\n", Json{{"passed", counts.passed}, {"failed", counts.failed}}.dump());
  } else {
    fmt::print("{} passed, {} failed\n", counts.passed, counts.failed);
  }
  return static_cast<int>(counts.failed == 0 ? ExitCode::kOk : ExitCode::kFailure);
}

}  // namespace tycho
