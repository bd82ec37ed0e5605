// A queue and a thread. Names of checkpoints hold a random id, so an object of the right size is the right
// one, and a listing tells rank 0 what other ranks have stored.
#include "trainer/checkpoint/checkpoint_uploads.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/seconds_since.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/retention.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kFirstLook_s = 0.1, kLongestLook_s = 5, kPatience_s = 60;

/// Returns the number in "rank-00003.safetensors"; 0 for other files.
int rank_of_file(const std::string& name) {
  constexpr std::string_view kPrefix = "rank-";
  int rank = 0;
  if (name.starts_with(kPrefix))
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), rank);
  return rank;
}

/// Returns what keeps the checkpoint in a folder of this machine from being read; "" for nothing.
std::string damage_of(const std::string& folder) {
  try {
    find_checkpoint(folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

CheckpointUploads::CheckpointUploads(UploadSettings settings)
    : settings_(std::move(settings)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

CheckpointUploads::~CheckpointUploads() = default;

void CheckpointUploads::add(const std::string& folder) {
  Waiting one{.folder = folder, .name = std::filesystem::path(folder).filename().string()};
  try {
    const CheckpointInfo info = find_checkpoint(folder);
    one.uuid = info.uuid, one.step = info.step;
  } catch (const Error&) {
    return;  // its removal was quicker, or the thread that uploads reports it
  }
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(one));
  changed_.notify_all();
}

void CheckpointUploads::begin(const std::vector<std::string>& waiting, std::vector<std::string> leftovers) {
  for (const std::string& folder : waiting) add(folder);
  const std::lock_guard lock(mutex_);
  for (Waiting& one : queue_) one.is_of_earlier_start = true;
  leftovers_ = std::move(leftovers);
  aborts_old_parts_ = settings_.rank == 0;
  has_begun_ = true;
  changed_.notify_all();
}

void CheckpointUploads::set_resumed_from(const std::string& uuid) {
  const std::lock_guard lock(mutex_);
  resumed_from_ = uuid;
}

bool CheckpointUploads::needs(const std::string& uuid) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(queue_.begin(), queue_.end(), [&](const Waiting& one) { return one.uuid == uuid; });
}

int64_t CheckpointUploads::num_behind() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(queue_);
}

int64_t CheckpointUploads::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

std::string CheckpointUploads::behind_text() const {
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) return "";
  std::string text =
      fmt::format("{} checkpoint{}, {} of step {} uploaded", queue_.size(), queue_.size() == 1 ? "" : "s",
                  human_bytes(static_cast<double>(bytes_of_current_)), queue_.front().step);
  if (!failure_.empty())
    text += ": " + failure_;
  else if (!activity_.empty())
    text += "; " + activity_;
  return text;
}

std::vector<UploadEvent> CheckpointUploads::take_events() {
  const std::lock_guard lock(mutex_);
  if (lost_) std::rethrow_exception(lost_);
  if (settings_.max_lost > 0 && std::ssize(queue_) > settings_.max_lost)
    fail(ExitCode::kStorage,
         "[checkpoint] {} checkpoints in a row are not in {}, and ckpt.remote_max_lost allows {}{}{}. They "
         "are "
         "in this run's folder: the same command uploads them and resumes once the store can be reached",
         queue_.size(), settings_.remote->place(), settings_.max_lost,
         failure_.empty() ? "" : "; the last try failed: ", failure_);
  return std::exchange(events_, {});
}

void CheckpointUploads::run(const std::stop_token& stop) {
  double wait_s = settings_.first_wait_s;
  while (!stop.stop_requested()) {
    std::optional<Waiting> next;
    {
      std::unique_lock lock(mutex_);
      const bool has_work = changed_.wait(lock, stop, [this] {
        return has_begun_ && (!queue_.empty() || !leftovers_.empty() || aborts_old_parts_);
      });
      if (!has_work) return;
      if (!queue_.empty()) next = queue_.front();
      bytes_of_current_ = 0;
    }
    if (const std::string damage = next ? damage_of(next->folder) : ""; !damage.empty()) {
      drop(*next, damage);
      continue;
    }
    try {
      clear_leftovers(stop);
      if (next) {
        const auto start = Clock::now();
        const int64_t num_bytes = upload(*next, stop);
        note_done(*next, num_bytes, seconds_since(start));
      }
      wait_s = settings_.first_wait_s;
    } catch (const Error& error) {
      if (stop.stop_requested()) return;
      if (error.code() == ExitCode::kFolderOwned) {
        const std::lock_guard lock(mutex_);
        lost_ = std::current_exception();
        return;
      }
      note_failure(next.value_or(Waiting{}), error.what());
      pause(wait_s, stop);
      wait_s = std::min(2 * wait_s, settings_.longest_wait_s);
    }
  }
}

// Rank 0 alone. What an earlier start left is aborted only when all that it will still finish is finished.
void CheckpointUploads::clear_leftovers(const std::stop_token& stop) {
  std::vector<std::string> leftovers;
  bool aborts = false;
  {
    const std::lock_guard lock(mutex_);
    leftovers = leftovers_;
    aborts = aborts_old_parts_ && std::none_of(queue_.begin(), queue_.end(),
                                               [](const Waiting& one) { return one.is_of_earlier_start; });
  }
  if (settings_.rank != 0) leftovers.clear();
  for (const std::string& folder : leftovers) {
    check_owner(stop);
    settings_.remote->remove(folder, stop);
  }
  int num_aborted = 0;
  if (aborts) {
    check_owner(stop);
    std::string all = settings_.remote->object_name("", "");  // "checkpoints//"
    all.pop_back();
    num_aborted = settings_.remote->bucket().abort_unfinished(all, seconds_since(start_) + 1, stop);
  }
  const std::lock_guard lock(mutex_);
  leftovers_.clear();
  if (aborts) aborts_old_parts_ = false;
  if (!leftovers.empty() || num_aborted > 0)
    events_.push_back({"upload",
                       fmt::format("removed what earlier starts had not finished in {}: {} checkpoints, {} "
                                   "uploads",
                                   settings_.remote->place(), leftovers.size(), num_aborted),
                       {{"folders", leftovers}, {"uploads", num_aborted}}});
}

int64_t CheckpointUploads::upload(const Waiting& one, const std::stop_token& stop) {
  Bucket& bucket = settings_.remote->bucket();
  const auto name_of = [&](const std::string& file) { return settings_.remote->object_name(one.name, file); };
  const CheckpointInfo info = find_checkpoint(one.folder);
  std::map<std::string, int64_t> there;
  for (const StoredObject& object : bucket.list(name_of(""), stop)) there[object.name] = object.num_bytes;
  if (there.contains(name_of(kCommitFile))) return info.num_bytes;
  for (const FileRecord& file : manifest_from_json(info.manifest, one.folder).files) {
    const auto found = there.find(name_of(file.name));
    if (!is_mine(file.name) || (found != there.end() && found->second == file.num_bytes)) continue;
    UploadOptions options;
    options.progress = [this](int64_t num_bytes) {
      const std::lock_guard lock(mutex_);
      progress_ += num_bytes, bytes_of_current_ += num_bytes;
    };
    bucket.put_file(name_of(file.name), one.folder + "/" + file.name, file.num_bytes, options, stop);
  }
  if (settings_.rank != 0) return info.num_bytes;
  wait_for_parts(one, info, stop);
  check_owner(stop);
  bucket.put(name_of(kCommitFile), read_file(one.folder + "/" + kCommitFile), PutWhen::kAlways, stop);
  retain(info, stop);
  return info.num_bytes;
}

void CheckpointUploads::wait_for_parts(const Waiting& one, const CheckpointInfo& info,
                                       const std::stop_token& stop) {
  const std::vector<FileRecord> files = manifest_from_json(info.manifest, one.folder).files;
  const auto start = Clock::now();
  size_t num_missing = files.size();
  for (double wait_s = kFirstLook_s;; wait_s = std::min(2 * wait_s, kLongestLook_s)) {
    std::map<std::string, int64_t> there;
    for (const StoredObject& object :
         settings_.remote->bucket().list(settings_.remote->object_name(one.name, ""), stop))
      there[object.name] = object.num_bytes;
    std::vector<std::string> missing;
    for (const FileRecord& file : files) {
      const auto found = there.find(settings_.remote->object_name(one.name, file.name));
      if (found == there.end() || found->second != file.num_bytes) missing.push_back(file.name);
    }
    {
      const std::lock_guard lock(mutex_);
      if (missing.size() < num_missing) ++progress_, num_missing = missing.size();
      activity_ = missing.empty() ? "" : missing.front() + " is not there yet";
    }
    if (missing.empty()) return;
    if (seconds_since(start) > kPatience_s)
      note_failure(one, fmt::format("{} of another rank is not there after {:.0f} s", missing.front(),
                                    seconds_since(start)));
    pause(wait_s, stop);
    if (stop.stop_requested())
      fail(ExitCode::kTerminated, "[checkpoint] stopped before all ranks had stored");
  }
}

void CheckpointUploads::retain(const CheckpointInfo& newest, const std::stop_token& stop) {
  if (settings_.keep == 0) return;
  std::string resumed_from;
  {
    const std::lock_guard lock(mutex_);
    resumed_from = resumed_from_;
  }
  for (const CheckpointInfo& old : superseded(settings_.remote->list(nullptr, nullptr, stop), settings_.keep,
                                              settings_.epoch, newest.uuid, resumed_from)) {
    check_owner(stop);
    settings_.remote->remove(std::filesystem::path(old.path).filename().string(), stop);
  }
}

void CheckpointUploads::note_done(const Waiting& one, int64_t num_bytes, double seconds) {
  const std::lock_guard lock(mutex_);
  queue_.pop_front();
  ++progress_;
  bytes_of_current_ = 0;
  failure_.clear(), activity_.clear();
  failed_step_ = -1;
  std::string text =
      fmt::format("step {} uploaded to {}, {} in {:.1f} s", one.step, settings_.remote->place(),
                  human_bytes(static_cast<double>(num_bytes)), seconds);
  if (!queue_.empty()) text += fmt::format("; {} behind", queue_.size());
  events_.push_back({"upload",
                     std::move(text),
                     {{"step", one.step},
                      {"place", settings_.remote->place()},
                      {"path", settings_.remote->place() + "/" + settings_.remote->object_name(one.name, "")},
                      {"bytes", num_bytes},
                      {"seconds", seconds},
                      {"behind", queue_.size()}}});
  changed_.notify_all();
}

void CheckpointUploads::note_failure(const Waiting& one, const std::string& why) {
  const std::lock_guard lock(mutex_);
  failure_ = why;
  // Once for each checkpoint that joins those that wait.
  const int64_t newest = queue_.empty() ? one.step : queue_.back().step;
  if (newest == failed_step_) return;
  failed_step_ = newest;
  events_.push_back(
      {"warning",
       fmt::format("{} checkpoint{} not in {} yet, the oldest of step {}: {}. {} in this run's "
                   "folder meanwhile, and the upload is tried again",
                   queue_.size(), queue_.size() == 1 ? " is" : "s are", settings_.remote->place(), one.step,
                   why, queue_.size() == 1 ? "It stays" : "They stay"),
       {{"step", one.step}, {"behind", queue_.size()}}});
}

void CheckpointUploads::drop(const Waiting& one, const std::string& why) {
  const std::lock_guard lock(mutex_);
  queue_.pop_front();
  ++progress_;
  events_.push_back(
      {"warning",
       fmt::format("step {} is not uploaded to {}: {}", one.step, settings_.remote->place(), why),
       {{"step", one.step}, {"path", one.folder}}});
}

void CheckpointUploads::pause(double seconds, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
}

void CheckpointUploads::check_owner(const std::stop_token& stop) const {
  if (settings_.check_owner) settings_.check_owner(stop);
}

bool CheckpointUploads::is_mine(const std::string& file) const {
  return rank_of_file(file) % settings_.num_ranks == settings_.rank;
}

}  // namespace tycho
