// Finds committed checkpoints: COMMIT decides, never a name, a date or `latest`.
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "trainer/base/error.h"
#include "trainer/checkpoint/listing.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/remote_checkpoints.h"
#include "trainer/checkpoint/retention.h"

namespace fs = std::filesystem;

namespace tycho {
namespace {

std::string base_name(const std::string& path) { return fs::path(path).filename().string(); }

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool is_dir(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

std::vector<std::string> checkpoint_folders(const std::string& dir) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    if (step_of_folder_name(it->path().filename().string())) paths.push_back(it->path().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    fail(ExitCode::kUnusable, "[checkpoint] cannot list {}: {}", dir, error.message());
  }
  return paths;
}

/// Reads COMMIT and compares file sizes, without reading the shards.
CheckpointInfo read_info(const std::string& folder) {
  const std::string commit = folder + "/" + kCommitFile;
  return info_of_commit(read_file(commit), folder, [&](const std::string& name) {
    const std::string path = folder + "/" + name;
    std::error_code error;
    const uint64_t size = fs::file_size(path, error);
    if (error) fail(ExitCode::kUnusable, "[checkpoint] cannot read {}: {}", path, error.message());
    return static_cast<int64_t>(size);
  });
}

std::string what_is_there(const std::string& dir, const std::vector<std::string>& broken,
                          const std::vector<std::string>& unfinished) {
  std::string text;
  for (const std::string& line : broken) text += "\n  " + line;
  for (const std::string& line : unfinished) text += "\n  " + line;
  if (!text.empty()) return text;
  constexpr int kMostNames = 10;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (names.empty()) return " (it is empty)";
  std::sort(names.begin(), names.end());
  const size_t shown = std::min<size_t>(names.size(), kMostNames);
  const std::vector<std::string> head(names.begin(), names.begin() + static_cast<int64_t>(shown));
  return fmt::format(" (it holds {}{})", fmt::join(head, ", "), shown < names.size() ? ", ..." : "");
}

void compare_hint(const std::string& dir, CheckpointInfo& newest) {
  const std::string path = dir + "/" + kLatestFile;
  const std::string name = base_name(newest.path);
  std::string hint;
  try {
    hint = is_file(path) ? read_file(path) : name;
  } catch (const Error& error) {
    newest.warnings.push_back(error.what());
    return;
  }
  while (!hint.empty() && hint.back() == '\n') hint.pop_back();
  if (hint == name) return;
  // Damaged text is not for terminals.
  if (!step_of_folder_name(hint)) hint = "an unknown name";
  newest.warnings.push_back(
      fmt::format("{} names {}, but the newest checkpoint is {}: using the newest", path, hint, name));
}

}  // namespace

CheckpointInfo info_of_commit(const std::string& text, const std::string& path,
                              const std::function<int64_t(const std::string&)>& size_of) {
  const Manifest manifest = parse_manifest(text, path + "/" + kCommitFile);
  CheckpointInfo info{.path = path,
                      .step = manifest.step,
                      .epoch = manifest.epoch,
                      .save_number = manifest.save_number,
                      .uuid = manifest.uuid,
                      .tag = manifest.tag};
  info.num_bytes = static_cast<int64_t>(text.size());
  for (const FileRecord& file : manifest.files) {
    if (const int64_t size = size_of(file.name); size != file.num_bytes)
      fail(ExitCode::kUnusable, "[checkpoint] {}/{} has {} bytes, COMMIT says {} (XXH3-128 {})", path,
           file.name, size, file.num_bytes, file.hash);
    info.num_bytes += file.num_bytes;
  }
  info.manifest = manifest_json(manifest);
  return info;
}

void sort_newest_first(std::vector<CheckpointInfo>& checkpoints) {
  std::stable_sort(checkpoints.begin(), checkpoints.end(),
                   [](const CheckpointInfo& a, const CheckpointInfo& b) {
                     // Several of one step, such as those with names, are told apart by number; and training
                     // may go on from an earlier step in the same epoch. Older checkpoints have no numbers.
                     return std::tuple(a.epoch, a.save_number, a.step, base_name(a.path)) >
                            std::tuple(b.epoch, b.save_number, b.step, base_name(b.path));
                   });
}

int64_t newest_epoch(const std::string& dir) {
  const std::vector<CheckpointInfo> checkpoints = list_checkpoints(dir);
  return checkpoints.empty() ? 0 : checkpoints.front().epoch;
}

std::vector<CheckpointInfo> list_checkpoints(const std::string& dir, std::vector<std::string>* broken,
                                             std::vector<std::string>* unfinished) {
  std::vector<CheckpointInfo> committed;
  for (const std::string& folder : checkpoint_folders(dir)) {
    const std::string commit = folder + "/" + kCommitFile;
    try {
      if (::access(commit.c_str(), F_OK) == 0) {
        committed.push_back(read_info(folder));
      } else if (errno == ENOENT || errno == ENOTDIR) {
        if (unfinished) unfinished->push_back(base_name(folder) + ": no COMMIT, the save did not finish");
      } else {
        fail(ExitCode::kUnusable, "[checkpoint] cannot read {}: {}", commit, std::strerror(errno));
      }
    } catch (const Error& error) {
      if (broken) broken->push_back(base_name(folder) + ": " + error.what());
    }
  }
  sort_newest_first(committed);
  if (broken) std::sort(broken->begin(), broken->end());
  if (unfinished) std::sort(unfinished->begin(), unfinished->end());
  return committed;
}

CheckpointInfo find_checkpoint(const std::string& given) {
  // "runs/a/checkpoints/" has an empty last part.
  if (is_place_of_store(given)) return find_remote_checkpoint(given);
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (!is_dir(path)) {
    fail(ExitCode::kUnusable,
         "[checkpoint] {} is not a folder; give a checkpoint, a run, or a run's checkpoints{}", path,
         path.ends_with(".lua") ? ". A recipe's run is in the folder that its run_dir names: runs/NAME" : "");
  }
  if (is_file(path + "/" + kCommitFile)) return read_info(path);
  if (step_of_folder_name(base_name(path))) {
    fail(ExitCode::kUnusable,
         "[checkpoint] {} has no COMMIT: its save did not finish; give the run's folder to use the newest "
         "complete one{}",
         path, what_is_there(path, {}, {}));
  }
  const std::string dir = is_dir(path + "/checkpoints") ? path + "/checkpoints" : path;
  std::vector<std::string> broken, unfinished;
  std::vector<CheckpointInfo> committed = list_checkpoints(dir, &broken, &unfinished);
  if (committed.empty()) {
    fail(ExitCode::kUnusable, "[checkpoint] no readable checkpoint in {}{}", dir,
         what_is_there(dir, broken, unfinished));
  }
  CheckpointInfo newest = std::move(committed.front());
  // A damaged one may be newer: say so before steps are trained twice.
  for (const std::string& line : broken) newest.warnings.push_back("left out " + line);
  compare_hint(dir, newest);
  return newest;
}

int64_t free_bytes(const std::string& path) {
  struct statvfs info;
  if (::statvfs(path.c_str(), &info) != 0 || info.f_blocks == 0) return -1;
  const uint64_t blocks = ::geteuid() == 0 ? info.f_bfree : info.f_bavail;
  return static_cast<int64_t>(blocks * info.f_frsize);
}

}  // namespace tycho
