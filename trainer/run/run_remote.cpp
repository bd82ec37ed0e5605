// Rank 0 lists and decides; all ranks upload.
#include "trainer/run/run_remote.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/buckets/open_bucket.h"
#include "trainer/checkpoint/listing.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/comm/collective_strings.h"
#include "trainer/lock/run_lock.h"

namespace tycho {
namespace {

/// A beat that cannot be stored now is followed by another one.
constexpr RequestTries kBeatTries = {.retries = 1, .stall_s = 10};

/// Turns a signal's flag into a stop of requests.
class StopOnSignal {
 public:
  explicit StopOnSignal(const std::atomic<int>& signal)
      : thread_([this, &signal](const std::stop_token& over) {
          while (!over.stop_requested() && signal == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          if (signal != 0) stop_.request_stop();
        }) {}
  std::stop_token token() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  std::jthread thread_;
};

/// Returns the folders of this machine whose checkpoints are not in the store and would stay there.
std::vector<std::string> folders_to_upload(const std::vector<CheckpointInfo>& there,
                                           const std::string& run_dir, int64_t keep) {
  std::vector<CheckpointInfo> all = list_checkpoints(run_dir + "/checkpoints");
  const std::vector<CheckpointInfo> local = all;
  std::set<std::string> known, gone;
  for (const CheckpointInfo& info : there) known.insert(info.uuid);
  for (const CheckpointInfo& info : there)
    if (std::none_of(local.begin(), local.end(), [&](const auto& one) { return one.uuid == info.uuid; }))
      all.push_back(info);
  sort_newest_first(all);
  for (const CheckpointInfo& info : superseded(all, keep, /*epoch=*/0, "", "")) gone.insert(info.uuid);
  std::vector<std::string> folders;
  for (const CheckpointInfo& info : local)
    if (!known.contains(info.uuid) && !gone.contains(info.uuid)) folders.push_back(info.path);
  std::reverse(folders.begin(), folders.end());  // the oldest first, as they were saved
  return folders;
}

/// Returns the unfinished folders of the store that no folder of this machine will finish.
std::vector<std::string> leftovers_of(const std::vector<std::string>& unfinished,
                                      const std::vector<std::string>& waiting) {
  std::vector<std::string> left;
  for (const std::string& line : unfinished) {
    const std::string folder = line.substr(0, line.find(':'));
    if (std::none_of(waiting.begin(), waiting.end(),
                     [&](const std::string& path) { return path.ends_with("/" + folder); }))
      left.push_back(folder);
  }
  return left;
}

}  // namespace

int64_t take_place(RunRemote& remote, const TrainConfig& config, const std::string& run_dir,
                   std::function<void(const std::string& text)> waiting, const std::atomic<int>& stop) {
  if (!remote.checkpoints) return 0;
  const StopOnSignal on_signal(stop);
  try {
    if (!remote.lease) {
      const std::string place = remote_place(config.ckpt, config.run_name);
      remote.lease = std::make_unique<PlaceLease>(open_bucket(parse_remote(place)),
                                                  open_bucket(parse_remote(place), kBeatTries),
                                                  PlaceLease::Settings{.predecessor = uuid_of_owner(run_dir),
                                                                       .waiting = std::move(waiting),
                                                                       .stop = on_signal.token()});
    }
    remote.broken.clear(), remote.unfinished.clear();
    remote.committed = remote.checkpoints->list(&remote.broken, &remote.unfinished, on_signal.token());
  } catch (const Error& error) {
    if (stop != 0)
      fail(static_cast<ExitCode>(128 + stop),
           "[ckpt.remote] stopped while waiting for {}: nothing was trained", remote.checkpoints->place());
    if (error.code() != ExitCode::kStorage) throw;
    fail(
        ExitCode::kStorage,
        "[ckpt.remote] {}. A start needs the store, to know which checkpoint is the newest: start again when "
        "it can be reached, or with ckpt.remote=nil",
        error.what());
  }
  return remote.committed.empty() ? 0 : remote.committed.front().epoch;
}

std::vector<StoredCheckpoint> stored_checkpoints(const RunRemote& remote, const std::string& run_dir) {
  std::vector<StoredCheckpoint> stored;
  if (remote.checkpoints)
    for (const CheckpointInfo& info : remote.committed)
      stored.push_back({info.step, info.path + "/", info.num_bytes});
  else
    for (const CheckpointInfo& info : list_checkpoints(run_dir + "/checkpoints"))
      stored.push_back({info.step, info.path, info.num_bytes});
  std::reverse(stored.begin(), stored.end());
  return stored;
}

void start_uploads(RunRemote& remote, const TrainConfig& config, const std::string& run_dir,
                   Communicator& world, int64_t epoch) {
  if (!remote.checkpoints) return;
  std::vector<std::string> waiting;
  if (world.rank() == 0 && config.resume != "none")
    waiting = folders_to_upload(remote.committed, run_dir, config.ckpt.keep);
  const Json agreed = parse_json(all_gather_strings(world, Json(waiting).dump()).front(), "ckpt.remote");
  UploadSettings settings{.remote = remote.checkpoints, .rank = world.rank(), .num_ranks = world.size()};
  if (world.rank() == 0) {
    settings.keep = config.ckpt.keep;
    settings.epoch = epoch;
    settings.max_lost = config.ckpt.remote_max_lost;
    settings.check_owner = [&lease = *remote.lease](const std::stop_token& stop) { lease.check(stop); };
  }
  remote.uploads = std::make_unique<CheckpointUploads>(std::move(settings));
  remote.uploads->begin(agreed.get<std::vector<std::string>>(), leftovers_of(remote.unfinished, waiting));
}

}  // namespace tycho
