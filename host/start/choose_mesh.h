// Replaces "auto" of parallel, parallel.cp_attention, recompute.mode and micro_batch by what the planner
// finds, before a run or a plan.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bindings/define/recipe.h"
#include "trainer/plan/plan.h"
#include "trainer/recipe/train_config.h"
#include "trainer/rendezvous/rank_info.h"

namespace tycho {

/// A recipe without "auto".
struct ChosenRecipe {
  ResolvedRecipe recipe;
  std::vector<PinArgument> pins;     // the request's, followed by the choices
  std::vector<std::string> choices;  // such as "parallel.dp_shard=8"; micro_batch is the last
  std::string text;                  // the planner's table, in lines; "" when there was nothing to choose
};

/// Resolves the recipe again with the sizes that the planner finds for devices.num_ranks. All ranks choose
/// the same. A run folder that was started with the same number of ranks keeps its mesh, recompute.mode and
/// micro_batch. Throws Error (kTopology) when no mesh fits, kRecipe when the recipe does not name the
/// machine.
ChosenRecipe choose_mesh(ResolvedRecipe recipe, const RecipeRequest& request, const PlanDevices& devices);
/// Returns the same choice with half as many sequences in a micro-batch, or the next number below that
/// divides a rank's share; nullopt when the recipe sets the number, or when it is one.
std::optional<ChosenRecipe> with_smaller_micro_batch(const ChosenRecipe& chosen, const RecipeRequest& request,
                                                     const PlanDevices& devices);
/// Returns the devices of a plan: the number of ranks, and how many of them are on each machine.
PlanDevices devices_of(const RankInfo& place);
/// Returns a picture of the run's ranks on their machines, for its start; "" for one rank, and for a mesh
/// that the run will refuse.
std::string mesh_picture(const TrainConfig& config, const RankInfo& place);

}  // namespace tycho
