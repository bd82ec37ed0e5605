// Chooses where a run begins: fresh, or at a checkpoint.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/comm/communicator.h"
#include "trainer/metrics/reporter.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/weight_average.h"
#include "trainer/recipe/config_io.h"
#include "trainer/recipe/train_config.h"
#include "trainer/sharding/owned_range.h"

namespace tycho {

/// Checkpoints in the store of a run (ckpt.remote), newest first, and "name: why" for damaged ones.
struct StoredCheckpoints {
  std::vector<CheckpointInfo> committed;
  std::vector<std::string> broken;
};

/// Returns the checkpoints that a run may begin from, best first; empty for a fresh start.
/// resume = auto: those of the run folder and of its store, where the folder's copy comes first. When
/// checkpoints are expected and no readable one is found, throws Error (kUnusable) instead of starting over.
/// none: empty. A path: that checkpoint alone. The first one's warnings name those left out as damaged.
std::vector<CheckpointInfo> resume_candidates(const TrainConfig& config, const std::string& run_dir,
                                              const StoredCheckpoints& stored = {});
/// Returns rank 0's result on all ranks. Collective.
std::vector<CheckpointInfo> resume_candidates(const TrainConfig& config, const std::string& run_dir,
                                              Communicator& world, const StoredCheckpoints& stored = {});
/// Throws Error (kUnusable) on every rank when one rank resumed from another checkpoint, because it could not
/// read a newer one. Collective.
void require_same_checkpoint(Communicator& world, const CheckpointInfo& loaded);

/// Fills ranges, optimizer and average (null: none; it has not begun if the checkpoint lacks it) from the
/// first of `candidates` (one or more) whose bytes are right on every rank of `world`, and returns that
/// checkpoint. Collective. Loading is the check, so bytes are read once. A candidate that some rank cannot
/// read is reported, and the next one overwrites all that it has filled. Throws Error (kUnusable) when none
/// can be read, and at once for one of another model. See load_tensors for `between`.
CheckpointInfo load_newest(const std::vector<CheckpointInfo>& candidates,
                           const std::vector<OwnedRange>& ranges, Optimizer& optimizer, Communicator& world,
                           Reporter& reporter, const std::function<void()>& between = {},
                           WeightAverage* average = nullptr);

/// kNotTrained: keys that training does not depend on. kOfTheProcess: those of them that do not affect the
/// results of a run.
extern const std::vector<std::string> kNotTrained, kOfTheProcess;
/// Returns the differences between the recipe of a checkpoint and this one, apart from keys `without`, as a
/// table for display; "" when there are none. The recipe wins for everything but the state itself.
std::string recipe_changes(const Json& checkpoint_recipe, const Json& recipe,
                           const std::vector<std::string>& without);

/// Returns the differences between the recipe of a checkpoint and this one. Keys that are newer than the
/// checkpoint count with the values that it was trained with.
std::vector<ConfigDifference> changes_since(const Json& checkpoint_recipe, const Json& recipe);

/// Reports that the folder of a run, which continues from step `step`, has a newer checkpoint, if it has one.
void warn_of_newer(const std::string& run_dir, int64_t step, Reporter& reporter);

/// Returns a text when only one of the recipe and the checkpoint has an average of the weights, with the
/// consequence; "" otherwise.
std::string average_change(const CheckpointInfo& checkpoint, const Json& recipe);

/// Returns the differences between the route of a checkpoint and this one (compute_route), as a table for
/// display; "" when there are none, or when the checkpoint has no route.
std::string route_changes(const Json& checkpoint_route, const Json& route);

/// Reports to the run's record and display where it resumes, how the recipe differs from the checkpoint's,
/// and whether other instructions or libraries compute it from here on.
void report_resume(const CheckpointInfo& checkpoint, const Json& recipe, const Json& route,
                   Reporter& reporter);

}  // namespace tycho
