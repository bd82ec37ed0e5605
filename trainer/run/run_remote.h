// A run's place in a store of objects: taken at the start, listed, and uploaded to.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/checkpoint_uploads.h"
#include "trainer/checkpoint/place_lease.h"
#include "trainer/checkpoint/remote_checkpoints.h"
#include "trainer/comm/communicator.h"
#include "trainer/loggers/metric_record.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Empty without ckpt.remote. The parts refer to earlier ones.
struct RunRemote {
  std::shared_ptr<RemoteCheckpoints> checkpoints;
  std::unique_ptr<PlaceLease> lease;  // on rank 0, like the listing
  std::vector<CheckpointInfo> committed;
  std::vector<std::string> broken, unfinished;
  std::unique_ptr<CheckpointUploads> uploads;
};

/// Takes the place that the recipe names, unless it is taken already, and lists it. Returns the newest epoch
/// there; 0 without ckpt.remote. Called by rank 0 while the run folder is free and before it is taken. Throws
/// Error: kFolderOwned when another run owns the place, kStorage when the store does not answer, 128 + the
/// signal when `stop` holds one.
int64_t take_place(RunRemote& remote, const TrainConfig& config, const std::string& run_dir,
                   std::function<void(const std::string& text)> waiting, const std::atomic<int>& stop);

/// Returns the checkpoints where this run keeps them, the oldest first: in its place when it has one, else in
/// the run folder.
std::vector<StoredCheckpoint> stored_checkpoints(const RunRemote& remote, const std::string& run_dir);

/// Starts the uploads of all ranks, beginning with what earlier starts left in the run folder. `epoch` is
/// rank 0's. Collective.
void start_uploads(RunRemote& remote, const TrainConfig& config, const std::string& run_dir,
                   Communicator& world, int64_t epoch);

}  // namespace tycho
