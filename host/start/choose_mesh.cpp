// Choices are pins, so that the resolved recipe, its text and its history have them like any other argument.
#include "host/start/choose_mesh.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "host/machine.h"
#include "trainer/base/error.h"
#include "trainer/base/field_types.h"
#include "trainer/families/check.h"
#include "trainer/plan/cp_choice.h"
#include "trainer/plan/estimate.h"
#include "trainer/plan/memory_choice.h"
#include "trainer/plan/mesh_choice.h"
#include "trainer/plan/mesh_drawing.h"
#include "trainer/recipe/config_io.h"
#include "trainer/recipe/config_rules.h"
#include "trainer/run_folder/run_folder.h"
#include "trainer/run_folder/run_record.h"

namespace tycho {
namespace {

bool leaves_mesh(const TrainConfig& config) { return config.parallel.mesh == MeshSizes::kAuto; }
bool leaves_cp_attention(const TrainConfig& config) {
  return config.parallel.cp_attention == CpAttention::kAuto;
}
/// Returns the first key that "auto" leaves to the planner.
const char* open_key(const TrainConfig& config) {
  if (leaves_mesh(config)) return "parallel";
  if (leaves_cp_attention(config)) return "parallel.cp_attention";
  return leaves_recompute(config) ? "recompute.mode" : "micro_batch";
}

/// Returns the config of this run's last start, if it had the same number of ranks.
std::optional<TrainConfig> kept_choices(const TrainConfig& config, int64_t num_ranks) {
  const std::string folder = run_folder_path(config);
  if (config.resume == "none" || !holds_record(folder)) return {};
  std::vector<ConfigProblem> problems;
  const TrainConfig kept = read_config(read_run_record(folder).config, problems);
  if (!problems.empty() || leaves_mesh(kept) || leaves_cp_attention(kept) || leaves_memory(kept)) return {};
  if (!check_config(kept, num_ranks).empty()) return {};
  return kept;
}

/// Sets the machine to plan for: of the named GPU, else this machine. Where it has GPUs whose figures are not
/// known, the recipe must say which machine it is.
TrainConfig with_machine(TrainConfig config, const PlanDevices& devices) {
  if (!config.machine.name.empty()) return config;
  config.machine.name = machine_of_gpu(devices.gpu);
  if (!config.machine.name.empty()) return config;
  config.machine.name = "cpu";
  if (config.device == DeviceKind::kCpu || (config.device == DeviceKind::kAuto && visible_gpus().empty()))
    return config;
  config.machine.name = machine_of_gpu(gpu_model());
  if (config.machine.name.empty())
    fail(ExitCode::kRecipe,
         "[recipe] {} = \"auto\" needs to know the machines: set machine = \"h100\", \"h200\" or \"gb200\", "
         "or machine.name = \"custom\" with its figures",
         open_key(config));
  return config;
}

std::vector<std::string> mesh_pins(const MeshShape& mesh) {
  std::vector<std::string> pins = {"parallel.mesh=given"};
  for (size_t i = 0; i < kNumAxes; ++i)
    pins.push_back(fmt::format("parallel.{}={}", axis_name(static_cast<Axis>(i)), mesh.sizes[i]));
  return pins;
}

std::string micro_batch_pin(int64_t sequences) { return fmt::format("micro_batch={}sp", sequences); }

/// Pins that replace "auto", and the reasons for their values.
struct Choices {
  std::vector<std::string> pins;
  std::string text;
};

/// Resolves the request again with the choices as its last arguments.
ChosenRecipe resolve_with(const RecipeRequest& request, Choices choices) {
  RecipeRequest again = request;
  again.quiet = true;
  int number = 0;
  for (const PinArgument& pin : again.pins) number = std::max(number, pin.number);
  for (const std::string& pin : choices.pins) again.pins.push_back({++number, pin});
  ChosenRecipe chosen;
  chosen.recipe = resolve_recipe(again);
  chosen.pins = std::move(again.pins);
  chosen.choices = std::move(choices.pins);
  chosen.text = std::move(choices.text);
  return chosen;
}

/// Chooses the mesh and sets it in `config`. `kept` is the config of the same run's last start, if any.
void choose_axes(TrainConfig& config, const std::optional<TrainConfig>& kept, const PlanDevices& devices,
                 Choices& choices) {
  if (kept) {
    const MeshShape mesh = mesh_shape(kept->parallel, devices.num_ranks);
    choices.pins = mesh_pins(mesh);
    config.parallel = with_sizes(config.parallel, mesh);
    choices.text = fmt::format("mesh: {}, as this run had it before\n", describe(mesh));
    return;
  }
  config = with_machine(config, devices);
  const Machine machine = planned_machine(config, devices);
  const std::vector<MeshChoice> meshes = rank_meshes(config, devices);
  const MeshShape mesh = best_mesh(meshes, machine).mesh;
  choices.pins = mesh_pins(mesh);
  config.parallel = with_sizes(config.parallel, mesh);
  choices.text = fmt::format("parallel = \"auto\", {} rank{}\n{}\n{}taken: {}\n", devices.num_ranks,
                             devices.num_ranks == 1 ? "" : "s", machine_line(machine),
                             choices_text(meshes, machine), describe(mesh));
}

/// Chooses whether keys and values are gathered or sent around a ring on the mesh of `config`, and sets it
/// there.
void choose_cp_attention(TrainConfig& config, const std::optional<TrainConfig>& kept,
                         const PlanDevices& devices, Choices& choices) {
  config.parallel.cp_attention = CpAttention::kGather;
  require_valid(config, devices.num_ranks);
  if (kept && kept->parallel.cp == config.parallel.cp) {
    config.parallel.cp_attention = kept->parallel.cp_attention;
    choices.text +=
        fmt::format("cp_attention: {}, as this run had it before\n", enum_name(config.parallel.cp_attention));
  } else if (config.parallel.cp > 1) {
    TrainConfig planned = with_machine(config, devices);
    if (leaves_memory(planned)) planned = with_choice(planned, choose_memory(planned, devices));
    const std::vector<CpForm> forms = compare_cp_forms(planned, model_layout(planned.model), devices);
    config.parallel.cp_attention = faster_form(forms);
    choices.text += fmt::format("parallel.cp_attention = \"auto\", received per step\n{}",
                                forms_text(forms, config.parallel.cp_attention));
  }
  choices.pins.push_back(fmt::format("parallel.cp_attention={}", enum_name(config.parallel.cp_attention)));
}

/// Chooses recompute.mode and micro_batch on the mesh of `config`, as far as it leaves them open.
void choose_for_memory(const TrainConfig& config, const std::optional<TrainConfig>& kept,
                       const PlanDevices& devices, Choices& choices) {
  require_valid(config, devices.num_ranks);
  const int64_t share = data_ranks(config.parallel, devices.num_ranks);
  MemoryChoice choice;
  if (kept && data_ranks(kept->parallel, devices.num_ranks) == share) {
    choice.recompute = kept->recompute.mode;
    choice.sequences = micro_batch_sequences(*kept, share);
    if (leaves_recompute(config))
      choices.text +=
          fmt::format("recompute.mode: {}, as this run had it before\n", enum_name(choice.recompute));
    if (leaves_micro_batch(config))
      choices.text += fmt::format("micro_batch: {}sp, as this run had it before\n", choice.sequences);
  } else {
    const TrainConfig planned = with_machine(config, devices);
    choice = choose_memory(planned, devices);
    choices.text += choice_text(config, choice);
    if (!choice.fits && config.machine.name.empty() && devices.gpu.empty())
      choices.text +=
          fmt::format("planned for this machine, \"{}\"; name another one to plan for it: machine=h100\n",
                      planned.machine.name);
  }
  if (leaves_recompute(config))
    choices.pins.push_back(fmt::format("recompute.mode={}", enum_name(choice.recompute)));
  if (leaves_micro_batch(config)) choices.pins.push_back(micro_batch_pin(choice.sequences));
}

}  // namespace

PlanDevices devices_of(const RankInfo& place) {
  PlanDevices devices;
  devices.num_ranks = place.num_ranks;
  devices.ranks_per_node = place.num_local_ranks;
  return devices;
}

ChosenRecipe choose_mesh(ResolvedRecipe recipe, const RecipeRequest& request, const PlanDevices& devices) {
  const bool mesh_open = leaves_mesh(recipe.config), cp_open = leaves_cp_attention(recipe.config),
             memory_open = leaves_memory(recipe.config);
  if (!mesh_open && !memory_open && !cp_open) return {std::move(recipe), request.pins, {}, ""};
  TrainConfig config = recipe.config;
  const std::optional<TrainConfig> kept = kept_choices(config, devices.num_ranks);
  Choices choices;
  if (mesh_open) choose_axes(config, kept, devices, choices);
  if (cp_open) choose_cp_attention(config, kept, devices, choices);
  if (memory_open) choose_for_memory(config, kept, devices, choices);
  return resolve_with(request, std::move(choices));
}

std::optional<ChosenRecipe> with_smaller_micro_batch(const ChosenRecipe& chosen, const RecipeRequest& request,
                                                     const PlanDevices& devices) {
  const TrainConfig& config = chosen.recipe.config;
  const int64_t share = data_ranks(config.parallel, devices.num_ranks);
  const int64_t sequences = micro_batch_sequences(config, share);
  const std::string pin = micro_batch_pin(sequences);
  if (sequences == 1 || chosen.choices.empty() || chosen.choices.back() != pin) return {};
  std::vector<std::string> pins = chosen.choices;
  pins.back() = micro_batch_pin(largest_divisor(global_batch_sequences(config) / share, sequences / 2));
  const std::string text = fmt::format("starting again with {} instead of {}\n", pins.back(), pin);
  return resolve_with(request, {std::move(pins), text});
}

std::string mesh_picture(const TrainConfig& config, const RankInfo& place) {
  if (place.num_ranks == 1 || !check_config(config, place.num_ranks).empty()) return "";
  const MeshShape mesh = mesh_shape(config.parallel, place.num_ranks);
  return fmt::format("mesh: {}\n{}", describe(mesh), draw_mesh(mesh, place.num_local_ranks));
}

}  // namespace tycho
