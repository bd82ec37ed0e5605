// Asks git as a child process, without a shell, for a few seconds at most.
#include "host/git_facts.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include "bindings/define/source_file.h"
#include "host/process/child_process.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr size_t kMaxPatch = size_t{256} << 10;
constexpr auto kPatience = std::chrono::seconds(5);

/// Returns true when the folder is in a repository, without starting a process.
bool is_in_repository(std::filesystem::path folder) {
  std::error_code error;
  for (folder = std::filesystem::absolute(folder, error); !error; folder = folder.parent_path()) {
    if (std::filesystem::exists(folder / ".git", error)) return true;
    if (folder == folder.root_path()) return false;
  }
  return false;
}

/// Returns the output of a git command; nullopt when it fails, takes too long or prints more than `most`
/// bytes.
std::optional<std::string> ask_git(const std::string& folder, std::vector<std::string> words, size_t most) {
  words.insert(words.begin(), {"git", "-c", "core.fsmonitor=false", "-c", "core.safecrlf=false"});
  const std::optional<ChildAnswer> answer = ask_process(
      {.argv = words,
       .folder = folder,
       .environment = {{"GIT_OPTIONAL_LOCKS", "0"}, {"GIT_TERMINAL_PROMPT", "0"}, {"LC_ALL", "C"}}},
      kPatience, most);
  if (!answer || answer->end.code != 0) return {};
  return answer->output;
}

}  // namespace

Json git_facts(const std::string& folder) {
  Json facts = Json::object();
  if (!is_in_repository(folder)) return facts;
  try {
    const auto add = [&](const char* name, Json value) {
      facts[name] = Json::array({{{"by", "git"}, {"at", folder}, {"value", std::move(value)}}});
    };
    std::optional<std::string> head = ask_git(folder, {"rev-parse", "--verify", "HEAD"}, 100);
    if (!head) return facts;
    head->erase(head->find_last_not_of('\n') + 1);
    add("git.head", *head);
    const std::optional<std::string> patch = ask_git(
        folder, {"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty", "HEAD"},
        kMaxPatch);
    add("git.dirty", !patch || !patch->empty());
    if (patch && !patch->empty() && !find_utf8_error(*patch)) add("git.patch", *patch);
  } catch (const Error&) {
    // A process that cannot be started: a run needs no git.
  }
  return facts;
}

}  // namespace tycho
