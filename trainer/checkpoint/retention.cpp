// The order of deletions, and the choice of what is deleted.
#include "trainer/checkpoint/retention.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "trainer/base/error.h"

namespace fs = std::filesystem;

namespace tycho {
namespace {

constexpr size_t kStepDigits = 9;
constexpr size_t kUuidDigits = 8;
constexpr std::string_view kPrefix = "step-";

std::vector<std::string> names_in(const std::string& dir) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) fail(ExitCode::kStorage, "[checkpoint] cannot list {}: {}", dir, error.message());
  std::sort(names.begin(), names.end());
  return names;
}

/// Returns the path of the folder itself, or of the first entry in it, that is a link; "" when there is none.
std::string link_in(const std::string& path, const std::vector<std::string>& names) {
  std::error_code error;
  if (fs::is_symlink(path, error)) return path;
  for (const std::string& name : names) {
    if (fs::is_symlink(path + "/" + name, error)) return path + "/" + name;
  }
  return "";
}

/// Returns true for a file that a killed write_file_atomically() left: "COMMIT.tmp-4711".
bool is_temporary_of(std::string_view file, std::string_view name) {
  return name.starts_with(std::string(file) + ".tmp-");
}

bool all_in(std::string_view text, std::string_view set) {
  return text.find_first_not_of(set) == std::string_view::npos;
}

}  // namespace

std::string checkpoint_folder_name(int64_t step, const std::string& uuid) {
  return fmt::format("{}{:09}.{}", kPrefix, step, uuid.substr(0, kUuidDigits));
}

std::optional<int64_t> step_of_folder_name(const std::string& name) {
  const std::string_view text = name;
  if (text.size() < kPrefix.size() + kStepDigits + 1 + kUuidDigits || !text.starts_with(kPrefix)) return {};
  const std::string_view uuid = text.substr(text.size() - kUuidDigits);
  const std::string_view digits = text.substr(kPrefix.size(), text.size() - kUuidDigits - 1 - kPrefix.size());
  if (digits.size() > 18 || !all_in(digits, "0123456789") || !all_in(uuid, "0123456789abcdef")) return {};
  if (text[text.size() - kUuidDigits - 1] != '.') return {};
  return std::stoll(std::string(digits));
}

std::vector<CheckpointInfo> superseded(const std::vector<CheckpointInfo>& committed, int64_t keep,
                                       int64_t epoch, const std::string& saved,
                                       const std::string& resumed_from) {
  std::vector<CheckpointInfo> gone;
  if (keep <= 0) return gone;
  int64_t newer = 0, newer_of_epoch = 0;
  std::set<std::string> tags;
  for (const CheckpointInfo& info : committed) {
    const bool newest_of_tag = !info.tag.empty() && tags.insert(info.tag).second;
    const bool spared =
        newest_of_tag || info.uuid == saved || (info.uuid == resumed_from && newer_of_epoch < 2);
    if (newer >= keep && !spared) gone.push_back(info);
    ++newer;
    if (info.epoch == epoch) ++newer_of_epoch;
  }
  // The oldest go first: a crash in between leaves the newer ones.
  std::reverse(gone.begin(), gone.end());
  return gone;
}

bool is_linked(const std::string& path) { return !link_in(path, names_in(path)).empty(); }

void remove_checkpoint(FileOps& files, const std::string& path) {
  std::vector<std::string> names = names_in(path);
  if (const std::string link = link_in(path, names); !link.empty())
    fail(ExitCode::kStorage,
         "[checkpoint] {} is a link, so {} is kept somewhere else and was not removed. Remove the link "
         "yourself if it is no longer needed",
         link, path);
  const auto commit = std::find(names.begin(), names.end(), kCommitFile);
  if (commit != names.end()) {
    files.remove_file(path + "/" + kCommitFile);
    // Without this a power cut could bring COMMIT back and not the shards.
    files.sync_dir(path);
    names.erase(commit);
  }
  for (const std::string& name : names) files.remove_file(path + "/" + name);
  files.remove_dir(path);
}

std::vector<std::string> sweep_leftovers(FileOps& files, const std::string& dir, int64_t step,
                                         const std::function<void()>& check_owner) {
  std::vector<std::string> problems;
  const auto remove = [&](const std::string& path, void (*how)(FileOps&, const std::string&)) {
    check_owner();
    try {
      how(files, path);
    } catch (const Error& problem) {
      if (problem.code() != ExitCode::kStorage) throw;
      problems.push_back(problem.what());
    }
  };
  const auto remove_file = [](FileOps& with, const std::string& path) { with.remove_file(path); };
  for (const std::string& name : names_in(dir)) {
    const std::string path = dir + "/" + name;
    if (is_temporary_of(kLatestFile, name)) {
      remove(path, remove_file);
      continue;
    }
    const std::optional<int64_t> folder_step = step_of_folder_name(name);
    std::error_code error;
    if (!folder_step || fs::is_symlink(path, error) || !fs::is_directory(path, error) || is_linked(path))
      continue;
    if (*folder_step <= step && !fs::exists(path + "/" + kCommitFile, error) && !error) {
      remove(path, remove_checkpoint);
      continue;
    }
    for (const std::string& file : names_in(path))
      if (is_temporary_of(kCommitFile, file)) remove(path + "/" + file, remove_file);
  }
  return problems;
}

}  // namespace tycho
