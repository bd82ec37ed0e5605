// One listing shows names and sizes; each COMMIT is read once, and bytes of shards when somebody asks.
#include "trainer/checkpoint/remote_checkpoints.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/buckets/open_bucket.h"
#include "trainer/checkpoint/listing.h"
#include "trainer/checkpoint/retention.h"

namespace tycho {
namespace {

constexpr int64_t kMostCommitBytes = int64_t{1} << 30;

std::string without_end_slash(std::string place) {
  while (place.size() > 1 && place.back() == '/') place.pop_back();
  return place;
}

ReadCheckpointFile reader_below(std::shared_ptr<Bucket> bucket, const std::string& prefix) {
  return [bucket = std::move(bucket), prefix](const std::string& file, int64_t offset, char* to, size_t n) {
    bucket->read(prefix + file, offset, {to, n});
  };
}

/// Returns the checkpoint that the place itself is; nullopt when it holds no COMMIT.
std::optional<CheckpointInfo> checkpoint_at(const std::shared_ptr<Bucket>& bucket, const std::string& place) {
  const std::optional<std::string> text = bucket->get(kCommitFile, kMostCommitBytes);
  if (!text) return {};
  std::map<std::string, int64_t> sizes;
  for (const StoredObject& object : bucket->list("")) sizes[object.name] = object.num_bytes;
  CheckpointInfo info = info_of_commit(*text, place, [&](const std::string& file) {
    const auto found = sizes.find(file);
    return found == sizes.end() ? -1 : found->second;
  });
  info.read = reader_below(bucket, "");
  return info;
}

}  // namespace

bool is_place_of_store(const std::string& text) { return text.find("://") != std::string::npos; }

RemoteCheckpoints::RemoteCheckpoints(std::shared_ptr<Bucket> bucket, std::string place, std::string inside)
    : bucket_(std::move(bucket)), place_(without_end_slash(std::move(place))), inside_(std::move(inside)) {}

std::string RemoteCheckpoints::object_name(const std::string& folder, const std::string& file) const {
  return inside_ + folder + "/" + file;
}

CheckpointInfo RemoteCheckpoints::read_info(const std::string& folder,
                                            const std::map<std::string, int64_t>& sizes,
                                            const std::stop_token& stop) {
  const std::string path = place_ + "/" + inside_ + folder;
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = commits_.find(folder); known != commits_.end()) text = known->second;
  }
  if (text.empty()) {
    text = bucket_->get(object_name(folder, kCommitFile), kMostCommitBytes, stop).value_or("");
    const std::lock_guard lock(mutex_);
    commits_[folder] = text;
  }
  CheckpointInfo info = info_of_commit(text, path, [&](const std::string& file) {
    const auto found = sizes.find(file);
    return found == sizes.end() ? -1 : found->second;
  });
  info.read = reader_below(bucket_, inside_ + folder + "/");
  return info;
}

std::vector<CheckpointInfo> RemoteCheckpoints::list(std::vector<std::string>* broken,
                                                    std::vector<std::string>* unfinished,
                                                    const std::stop_token& stop) {
  std::map<std::string, std::map<std::string, int64_t>> folders;
  for (const StoredObject& object : bucket_->list(inside_ + "step-", stop)) {
    const std::string name = object.name.substr(inside_.size());
    const size_t slash = name.find('/');
    if (slash == std::string::npos || !step_of_folder_name(name.substr(0, slash))) continue;
    folders[name.substr(0, slash)][name.substr(slash + 1)] = object.num_bytes;
  }
  std::vector<CheckpointInfo> committed;
  for (const auto& entry : folders) {
    const std::string& folder = entry.first;
    const std::map<std::string, int64_t>& sizes = entry.second;
    if (!sizes.contains(kCommitFile)) {
      if (unfinished) unfinished->push_back(folder + ": no COMMIT, the upload did not finish");
      continue;
    }
    try {
      committed.push_back(read_info(folder, sizes, stop));
    } catch (const Error& error) {
      // A COMMIT that the store refuses to hand out is not a damaged one.
      const bool is_read = [&] {
        const std::lock_guard lock(mutex_);
        return commits_.contains(folder);
      }();
      if (error.code() != ExitCode::kUnusable || !is_read) throw;
      if (broken) broken->push_back(folder + ": " + error.what());
    }
  }
  sort_newest_first(committed);
  return committed;
}

void RemoteCheckpoints::remove(const std::string& folder, const std::stop_token& stop) {
  bucket_->remove({object_name(folder, kCommitFile)}, stop);
  std::vector<std::string> names;
  for (const StoredObject& object : bucket_->list(inside_ + folder + "/", stop)) names.push_back(object.name);
  if (!names.empty()) bucket_->remove(names, stop);
  const std::lock_guard lock(mutex_);
  commits_.erase(folder);
}

std::shared_ptr<RemoteCheckpoints> open_remote_checkpoints(const std::string& place) {
  return std::make_shared<RemoteCheckpoints>(open_bucket(parse_remote(place)), place);
}

std::vector<CheckpointInfo> list_remote_checkpoints(const std::string& given,
                                                    std::vector<std::string>* broken,
                                                    std::vector<std::string>* unfinished) {
  const std::string place = without_end_slash(given);
  const std::shared_ptr<Bucket> bucket = open_bucket(parse_remote(place));
  if (step_of_folder_name(std::filesystem::path(place).filename().string())) {
    std::optional<CheckpointInfo> only = checkpoint_at(bucket, place);
    if (!only)
      fail(ExitCode::kUnusable,
           "[checkpoint] {} has no COMMIT: its upload did not finish, or it is not there; give the run's "
           "place "
           "to use the newest complete one",
           place);
    return {*std::move(only)};
  }
  for (const char* inside : {"checkpoints/", ""}) {
    std::vector<std::string> own_broken, own_unfinished;
    std::vector<CheckpointInfo> found =
        RemoteCheckpoints(bucket, place, inside).list(&own_broken, &own_unfinished);
    if (found.empty() && own_broken.empty() && own_unfinished.empty()) continue;
    if (broken) broken->insert(broken->end(), own_broken.begin(), own_broken.end());
    if (unfinished) unfinished->insert(unfinished->end(), own_unfinished.begin(), own_unfinished.end());
    return found;
  }
  fail(
      ExitCode::kUnusable,
      "[checkpoint] {} holds no checkpoint: expected a run's place, with checkpoints/step-... below it, or a "
      "checkpoint's; list what is there with your store's own program",
      place);
}

CheckpointInfo find_remote_checkpoint(const std::string& place) {
  std::vector<std::string> broken, unfinished;
  std::vector<CheckpointInfo> found = list_remote_checkpoints(place, &broken, &unfinished);
  if (found.empty()) {
    broken.insert(broken.end(), unfinished.begin(), unfinished.end());
    fail(ExitCode::kUnusable, "[checkpoint] no readable checkpoint in {}\n  {}", place,
         fmt::join(broken, "\n  "));
  }
  for (const std::string& line : broken) found.front().warnings.push_back("left out " + line);
  return std::move(found.front());
}

}  // namespace tycho
