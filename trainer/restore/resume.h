// Chooses where a run begins: fresh, or at a checkpoint.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/config/config_io.h"
#include "trainer/config/train_config.h"
#include "trainer/metrics/reporter.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/weight_average.h"
#include "trainer/parallel/communicator.h"
#include "trainer/units/owned_range.h"

namespace tycho {

/// Checkpoints that a run may begin from, best first; empty for a fresh start.
/// resume = auto: those of the run folder. Folders without a readable checkpoint where some are expected are
/// an Error (kUnusable), never a fresh start. none: nothing. A path: that checkpoint alone. Those that were
/// left out as damaged are in the first one's warnings.
std::vector<CheckpointInfo> resume_candidates(const TrainConfig& config, const std::string& run_dir);
/// The same for ranks: what rank 0 finds, by all. Collective.
std::vector<CheckpointInfo> resume_candidates(const TrainConfig& config, const std::string& run_dir,
                                              Communicator& world);
/// Throws Error (kUnusable) on every rank when one went on from another checkpoint, since it could not read a
/// newer one. Collective.
void require_same_checkpoint(Communicator& world, const CheckpointInfo& loaded);

/// Fills ranges, optimizer and average (null: none; one that the checkpoint does not keep has not begun) from
/// the first of `candidates` (one or more) of which every rank of `world` finds every byte right that it
/// reads, and returns it. Collective. Loading is the check: bytes are read once. One that some rank cannot
/// read is reported, and the next overwrites all that it left behind. Throws Error (kUnusable) when none can
/// be read, and at once for one of another model. `between`: as in load_tensors.
CheckpointInfo load_newest(const std::vector<CheckpointInfo>& candidates,
                           const std::vector<OwnedRange>& ranges, Optimizer& optimizer, Communicator& world,
                           Reporter& reporter, const std::function<void()>& between = {},
                           WeightAverage* average = nullptr);

/// Keys that training does not depend on, and those of them that say nothing of what a run is to give.
extern const std::vector<std::string> kNotTrained, kOfTheProcess;
/// What differs between the recipe of a checkpoint and this one but for keys `without`, as a table for
/// people; "" when nothing does. The recipe wins for everything but the state itself.
std::string recipe_changes(const Json& checkpoint_recipe, const Json& recipe,
                           const std::vector<std::string>& without);

/// What differs between the recipe of a checkpoint and this one. Keys that are younger than the checkpoint
/// have there the values that it was trained with.
std::vector<ConfigDifference> changes_since(const Json& checkpoint_recipe, const Json& recipe);

/// Says that a run, which goes on from step `step`, has a newer checkpoint in its folder, if it has one.
void warn_of_newer(const std::string& run_dir, int64_t step, Reporter& reporter);

/// That the recipe has an average of the weights and the checkpoint's had none, or the other way round, and
/// what comes of it; "" when neither is so.
std::string average_change(const CheckpointInfo& checkpoint, const Json& recipe);

/// What differs between the route that a checkpoint was computed by and this one (compute_route), as a table
/// for people; "" when nothing does, or when the checkpoint does not say.
std::string route_changes(const Json& checkpoint_route, const Json& route);

/// Tells the run's record and display where it goes on, how the recipe differs from the checkpoint's, and
/// whether other instructions or libraries compute it from here on.
void report_resume(const CheckpointInfo& checkpoint, const Json& recipe, const Json& route,
                   Reporter& reporter);

}  // namespace tycho
