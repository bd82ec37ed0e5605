// tycho plan: the memory and time that a run will need.
#include "trainer/plan/plan.h"

#include <algorithm>
#include <optional>

#include "host/machine.h"
#include "host/plan/schedule.h"
#include "host/recipe_words.h"
#include "host/signals.h"
#include "host/start/choose_mesh.h"
#include "host/start/probe.h"
#include "host/verb.h"
#include "trainer/base/bytes.h"
#include "trainer/base/field_types.h"
#include "trainer/hub/hub_files.h"
#include "trainer/metrics/curve.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/plot.h"
#include "trainer/plan/unread_files.h"
#include "trainer/recipe/config_io.h"
#include "trainer/recipe/schedule.h"

namespace tycho {

const VerbSpec kPlanSpec = {
    "plan RECIPE [key=value ...]",
    "Shows what a run will take: parameters, memory, FLOPs, steps, disk.",
    "  tycho plan recipes/demo.lua model.layers=8\n"
    "  tycho plan recipes/demo.lua --probe\n"
    "  tycho plan recipes/mpt-7b.lua --ranks 64 --gpu H200 --mfu 0.45\n"
    "  tycho plan recipes/mpt-7b.lua --ranks 64 machine=h100 parallel=auto\n"
    "  tycho plan recipes/mpt-7b.lua --schedule parallel.pp=4\n"
    "  tycho plan recipes/mpt-7b.lua --schedule=1f1b:4x8",
    {{"ranks",
      "Number of ranks. Default: what the recipe's parallel asks for; a node of its machine for \"auto\"; or "
      "1.",
      "N"},
     {"ranks-per-node", "Ranks on each node. Default: the GPUs of a node of the recipe's machine, or all.",
      "N"},
     {"gpu", "Estimate the time on this GPU: A100, \"H100 HBM3\", H200 and others.", "NAME"},
     {"mfu", "Assumed share of the GPU's peak.", "F", "0.4"},
     {"schedule",
      "Draw the recipe's pipeline schedule, or the one given: gpipe, 1f1b or interleaved, stages x "
      "micro-batches x chunks.",
      "1f1b:4x8", nullptr, "recipe"},
     {"probe", "Train three steps here in a temporary folder, and compare memory and speed with the plan."},
     kJsonOption,
     kTraceOption}};

namespace {

Json estimate_json(const StepTime& time) {
  Json axes = Json::array();
  for (const AxisTime& axis : time.axes)
    axes.push_back({{"axis", axis.axis},
                    {"crosses", axis.crosses},
                    {"transfer_s", axis.transfer_s},
                    {"wait_s", axis.wait_s}});
  return {{"step_s", time.step_s},
          {"compute_s", time.compute_s},
          {"wait_s", time.waits_s()},
          {"order_s", time.order_s},
          {"fp8_s", time.fp8_s},
          {"bubble_s", time.bubble_s},
          {"tokens_per_s", time.tokens_per_s},
          {"mfu", time.mfu},
          {"axes", std::move(axes)}};
}

Json forms_json(const std::vector<CpForm>& forms) {
  Json json = Json::array();
  for (const CpForm& form : forms)
    json.push_back({{"name", enum_name(form.attention)},
                    {"received_bytes", form.received_bytes},
                    {"buffer_bytes", form.buffer_bytes},
                    {"wait_s", form.wait_s},
                    {"step_s", form.step_s},
                    {"fits", form.fits}});
  return json;
}

Json plan_json(const Plan& plan) {
  const auto list = [](const std::vector<ByteItem>& items) {
    Json json = Json::array();
    for (const ByteItem& item : items)
      json.push_back({{"name", item.name},
                      {"num_bytes", item.num_bytes},
                      {"note", item.note},
                      {"is_estimate", item.is_estimate}});
    return json;
  };
  return {{"num_params", plan.num_params},
          {"num_matmul_params", plan.num_matmul_params},
          {"steps", plan.steps},
          {"tokens", plan.tokens},
          {"tokens_per_step", plan.tokens_per_step},
          {"micro_batches_per_step", plan.micro_batches_per_step},
          {"num_samples", plan.num_samples},
          {"data_epochs", plan.data_epochs},
          {"flops_per_token_full", plan.flops_per_token_full},
          {"flops_per_token_causal", plan.flops_per_token_causal},
          {"total_flops", plan.total_flops},
          {"num_ranks", plan.num_ranks},
          {"seconds", plan.seconds},
          {"machine", plan.machine},
          {"estimate", plan.estimate ? estimate_json(*plan.estimate) : Json()},
          {"mesh", plan.mesh},
          {"traffic", list(plan.traffic)},
          {"cp_attention", forms_json(plan.cp_forms)},
          {"memory", list(plan.memory)},
          {"memory_bytes", plan.memory_bytes},
          {"training_bytes", plan.training_bytes},
          {"estimated_bytes", plan.estimated_bytes},
          {"checkpoint_bytes", plan.checkpoint_bytes},
          {"disk_bytes", plan.disk_bytes}};
}

/// Returns the learning rate over the run; empty while the run's length is unknown, and for a schedule that
/// is called at every step.
Curve lr_curve(TrainConfig config, const Plan& plan) {
  constexpr int64_t kPoints = 200;
  Curve curve;
  if (plan.steps == 0 || config.scheduler.is<DynamicScheduleConfig>()) return curve;
  config.step_tokens = plan.step_tokens;
  const Schedule schedule = make_schedule(config, plan.steps, plan.num_samples);
  const double peak = std::visit([](const auto& kind) { return kind.lr; }, config.optimizer.value);
  const int64_t points = std::min(kPoints, plan.steps);
  for (int64_t i = 0; i < points; ++i) {
    const int64_t step = points == 1 ? 0 : (plan.steps - 1) * i / (points - 1);
    curve.x.push_back(static_cast<double>(step));
    curve.y.push_back(peak * schedule_factor(schedule, step));
  }
  return curve;
}

void print_schedule(const TrainConfig& config, const Plan& plan) {
  const Curve curve = lr_curve(config, plan);
  const std::string title = std::string("learning rate, ") + config.scheduler.kind();
  if (config.scheduler.is<DynamicScheduleConfig>()) fmt::print("\n{}: called at every step\n", title);
  if (!curve.x.empty())
    fmt::print("\n{}", plot(curve, {.unicode = locale_is_utf8(), .title = title, .x_label = "step"}));
}

Json probe_json(const Probe& probe, const RunInfo& run) {
  Json json = {{"device", run.device},
               {"num_steps", probe.num_steps},
               {"first_step_s", probe.first_step_s},
               {"step_s", probe.step_s},
               {"data_wait_s", probe.data_wait_s},
               {"tokens_per_s", probe.speed.tokens_per_s},
               {"tflops", probe.speed.tflops},
               {"memory_bytes", probe.memory_bytes},
               {"memory_before", probe.memory_before},
               {"seconds", probe.run_s}};
  if (probe.speed.mfu) json["mfu"] = *probe.speed.mfu;
  return json;
}

std::string probe_text(const Plan& plan, const Probe& probe, const RunInfo& run) {
  const auto bytes = [](int64_t n) { return human_bytes(static_cast<double>(n)); };
  const auto seconds = [](double s) {
    return s < 0.1 ? fmt::format("{:.3g} ms", 1e3 * s) : fmt::format("{:.3g} s", s);
  };
  const bool timed = plan.seconds > 0;
  const double planned_step_s = timed ? plan.seconds / static_cast<double>(plan.steps) : 0;
  const double planned_tokens_per_s = timed ? static_cast<double>(plan.tokens) / plan.seconds : 0;
  const auto planned = [&](const std::string& text) { return timed ? text : ""; };
  const std::string reached =
      probe.speed.mfu ? percent_text(*probe.speed.mfu) + " of the peak" : "peak unknown";
  std::string text =
      fmt::format("\nprobe: {} steps on {}\n{:22}planned    measured\n", probe.num_steps, run.device, "");
  const auto row = [&](const char* name, const std::string& expected, const std::string& measured,
                       const std::string& note) {
    text += fmt::format("  {:<14}{:>13}{:>12}  {}\n", name, expected, measured, note);
  };
  row("memory", bytes(plan.training_bytes), bytes(probe.memory_bytes),
      fmt::format("at the peak, in addition to {} used before", bytes(probe.memory_before)));
  row("step", planned(seconds(planned_step_s)), seconds(probe.step_s),
      "first step " + seconds(probe.first_step_s));
  row("data wait", "", seconds(probe.data_wait_s), "of a step");
  row("tokens/s", planned(fmt::format("{:.0f}", planned_tokens_per_s)),
      fmt::format("{:.0f}", probe.speed.tokens_per_s),
      flops_text(probe.speed.tflops * 1e12) + "/s, " + reached);
  row("whole run", planned(clock_text(plan.seconds)), clock_text(probe.run_s),
      plan.seconds_note.empty() ? "at this speed" : "planned " + plan.seconds_note);
  return text;
}

/// Returns the pipeline that --schedule asks for: the recipe's unless it names one; nullopt for a recipe
/// without stages.
std::optional<PipelineShape> asked_pipeline(const Arguments& arguments, const TrainConfig& config,
                                            const Plan& plan) {
  const std::string& text = arguments.text("schedule");
  if (text != "recipe") return pipeline_shape(text, plan.micro_batches_per_step);
  if (config.parallel.pp == 1) return {};
  return pipeline_shape(config.parallel, plan.micro_batches_per_step);
}

void print_pipeline(const std::optional<PipelineShape>& shape) {
  fmt::print("\n{}", shape
                         ? pipeline_text(*shape)
                         : "pipeline: parallel.pp is 1, so there is nothing to draw; --schedule=1f1b:4 draws "
                           "one of four stages\n");
}

ResolvedRecipe resolve(const RecipeRequest& request) {
  const InterruptLua interruptible;
  return resolve_recipe(request);
}

/// Returns the default number of ranks: one node for a mesh that is to be chosen.
int64_t usual_ranks(const TrainConfig& config) {
  if (config.parallel.mesh != MeshSizes::kAuto) return fewest_ranks(config.parallel);
  return config.machine.name.empty() ? 1 : machine_of(config.machine).gpus_per_node;
}

PlanDevices devices_of(const Arguments& arguments, const TrainConfig& config) {
  PlanDevices devices;
  devices.num_ranks =
      arguments.all("ranks").empty() ? usual_ranks(config) : arguments.integer("ranks", 1, 1 << 20);
  if (arguments.has("ranks-per-node"))
    devices.ranks_per_node = std::min(devices.num_ranks, arguments.integer("ranks-per-node", 1, 1 << 14));
  devices.mfu = arguments.number("mfu", 0.01, 1);
  if (arguments.has("gpu")) devices.gpu = arguments.text("gpu");
  return devices;
}

/// Sets the plan's ranks to the running ones, which measure.
void take_ranks_of(const RankInfo& place, const Arguments& arguments, PlanDevices& devices) {
  if (!arguments.all("ranks").empty() && devices.num_ranks != place.num_ranks)
    fail(ExitCode::kUsage,
         "[tycho plan] --probe measures the running ranks, {}: leave out --ranks {}, or start that many with "
         "tycho launch -n {} plan RECIPE --probe",
         place.num_ranks, devices.num_ranks, devices.num_ranks);
  devices.num_ranks = place.num_ranks;
  devices.ranks_per_node = place.num_local_ranks;
}

/// Sets the device that `auto` will choose, since some memory is taken only on a GPU.
TrainConfig on_this_device(TrainConfig config) {
  if (config.device == DeviceKind::kAuto && !visible_gpus().empty()) config.device = DeviceKind::kCuda;
  return config;
}

}  // namespace

int run_plan(const Arguments& arguments) {
  set_hub_access(HubAccess::kCacheOnly);
  const RecipeRequest request = recipe_request(arguments);
  ResolvedRecipe resolved = resolve(request);
  const bool json = arguments.has("json"), probing = arguments.has("probe");
  PlanDevices devices = devices_of(arguments, resolved.config);
  const RankInfo place = probing ? find_rank_place(process_environment()) : RankInfo();
  if (probing) take_ranks_of(place, arguments, devices);
  const ChosenRecipe chosen = choose_mesh(std::move(resolved), request, devices);
  const ResolvedRecipe& recipe = chosen.recipe;
  require_valid(recipe.config, devices.num_ranks);
  const TrainConfig config = probing ? on_this_device(recipe.config) : recipe.config;
  const Plan plan = make_plan(config, devices);
  const bool drawing = arguments.has("schedule");
  const std::optional<PipelineShape> pipeline =
      drawing ? asked_pipeline(arguments, config, plan) : std::nullopt;
  Json planned = plan_json(plan);
  planned["micro_batch"] = micro_batch_sequences(config, data_ranks(config.parallel, plan.num_ranks));
  if (drawing) planned["pipeline"] = pipeline ? pipeline_json(*pipeline) : Json();
  if (place.rank == 0)
    for (const ConfigProblem& one : unread_files(config))
      fmt::print(stderr, "note: {}: {}\n", one.path, one.message);
  if (json && !probing) fmt::print("{}\n", planned.dump(2));
  if (!json && place.rank == 0) {
    fmt::print("{}{}{}", chosen.text, chosen.text.empty() ? "" : "\n", plan_text(plan, config));
    print_schedule(config, plan);
    if (drawing) print_pipeline(pipeline);
  }
  if (!probing) return 0;
  return probe_recipe(recipe, place, [&](const Probe& probe, const RunInfo& run) {
    if (!json) return fmt::print("{}", probe_text(plan, probe, run));
    planned["probe"] = probe_json(probe, run);
    fmt::print("{}\n", planned.dump(2));
  });
}

}  // namespace tycho
