// The choice is pins, so that the resolved recipe, its text and its history have it like any other argument.
#include "host/choose_mesh.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "host/machine.h"
#include "trainer/base/error.h"
#include "trainer/config/config_io.h"
#include "trainer/plan/estimate.h"
#include "trainer/plan/mesh_choice.h"
#include "trainer/plan/mesh_drawing.h"
#include "trainer/run_folder/run_folder.h"
#include "trainer/run_folder/run_record.h"

namespace tycho {
namespace {

/// Of a run that has begun on as many ranks.
std::optional<MeshShape> mesh_of_folder(const TrainConfig& config, int64_t num_ranks) {
  const std::string folder = run_folder_path(config);
  if (config.resume == "none" || !holds_record(folder)) return {};
  std::vector<ConfigProblem> problems;
  const TrainConfig kept = read_config(read_run_record(folder).config, problems);
  if (!problems.empty() || kept.parallel.mesh != MeshSizes::kGiven) return {};
  if (!check_config(kept, num_ranks).empty()) return {};
  return mesh_shape(kept.parallel, num_ranks);
}

/// A machine without GPUs plans for itself; which GPUs it will have, a recipe says.
TrainConfig with_machine(TrainConfig config) {
  if (!config.machine.name.empty()) return config;
  if (config.device == DeviceKind::kCuda || (config.device == DeviceKind::kAuto && !visible_gpus().empty()))
    fail(ExitCode::kRecipe,
         "[recipe] parallel = \"auto\" needs to know the machines: set machine = \"h100\", \"h200\" or "
         "\"gb200\", or "
         "machine.name = \"custom\" with its figures");
  config.machine.name = "cpu";
  return config;
}

ChosenRecipe with_pins(const RecipeRequest& request, const MeshShape& mesh, std::string text) {
  ChosenRecipe chosen;
  chosen.text = std::move(text);
  chosen.chosen = {"parallel.mesh=given"};
  for (size_t i = 0; i < kNumAxes; ++i)
    chosen.chosen.push_back(fmt::format("parallel.{}={}", axis_name(static_cast<Axis>(i)), mesh.sizes[i]));
  RecipeRequest again = request;
  again.quiet = true;
  int number = 0;
  for (const PinArgument& pin : again.pins) number = std::max(number, pin.number);
  for (const std::string& pin : chosen.chosen) again.pins.push_back({++number, pin});
  chosen.recipe = resolve_recipe(again);
  chosen.pins = std::move(again.pins);
  return chosen;
}

}  // namespace

PlanDevices devices_of(const RankPlace& place) {
  PlanDevices devices;
  devices.num_ranks = place.num_ranks;
  devices.ranks_per_machine = place.num_local_ranks;
  return devices;
}

ChosenRecipe choose_mesh(ResolvedRecipe recipe, const RecipeRequest& request, const PlanDevices& devices) {
  if (recipe.config.parallel.mesh == MeshSizes::kGiven) return {std::move(recipe), request.pins, {}, ""};
  if (const std::optional<MeshShape> mesh = mesh_of_folder(recipe.config, devices.num_ranks))
    return with_pins(request, *mesh, fmt::format("mesh: {}, as this run had it before\n", describe(*mesh)));
  const TrainConfig config = with_machine(recipe.config);
  const Machine machine = planned_machine(config, devices);
  const std::vector<MeshChoice> choices = rank_meshes(config, devices);
  const MeshChoice best = best_mesh(choices, machine);
  return with_pins(request, best.mesh,
                   fmt::format("parallel = \"auto\", {} rank{}\n{}\n{}taken: {}\n", devices.num_ranks,
                               devices.num_ranks == 1 ? "" : "s", machine_line(machine),
                               choices_text(choices, machine), describe(best.mesh)));
}

std::string mesh_picture(const TrainConfig& config, const RankPlace& place) {
  if (place.num_ranks == 1 || !check_config(config, place.num_ranks).empty()) return "";
  const MeshShape mesh = mesh_shape(config.parallel, place.num_ranks);
  return fmt::format("mesh: {}\n{}", describe(mesh), draw_mesh(mesh, place.num_local_ranks));
}

}  // namespace tycho
