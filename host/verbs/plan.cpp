// tycho plan: what a run will take, before it is started.
#include "trainer/plan/plan.h"

#include <algorithm>

#include "host/signals.h"
#include "host/verb.h"
#include "trainer/config_io.h"
#include "trainer/metrics/curve.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/plot.h"
#include "trainer/optim/schedule.h"

namespace tycho {

const VerbSpec kPlanSpec = {
    "plan RECIPE [key=value ...]",
    "Says what a run will take: parameters, memory, FLOPs, steps, disk.",
    "  tycho plan recipes/demo.lua model.layers=8\n"
    "  tycho plan recipes/mpt-7b.lua --ranks 64 --gpu H200 --mfu 0.45",
    {{"ranks", "Ranks that share a batch.", "N", "1"},
     {"gpu", "Estimate the time on these: A100, \"H100 HBM3\", H200 and others.", "NAME"},
     {"mfu", "Share of the GPU's peak that training reaches.", "F", "0.4"},
     kJsonOption,
     kTraceOption}};

namespace {

Json plan_json(const Plan& plan) {
  Json memory = Json::array();
  for (const MemoryItem& item : plan.memory) {
    memory.push_back({{"name", item.name}, {"num_bytes", item.num_bytes}, {"note", item.note}});
  }
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
          {"memory", memory},
          {"memory_bytes", plan.memory_bytes},
          {"checkpoint_bytes", plan.checkpoint_bytes},
          {"disk_bytes", plan.disk_bytes}};
}

/// The learning rate over the run; nothing while its length is not known, and for one that is asked at every
/// step.
Curve lr_curve(const TrainConfig& config, const Plan& plan) {
  constexpr int64_t kPoints = 200;
  Curve curve;
  if (plan.steps == 0 || config.scheduler.is<DynamicScheduleConfig>()) return curve;
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
  if (config.scheduler.is<DynamicScheduleConfig>()) fmt::print("\n{}: asked at every step\n", title);
  if (!curve.x.empty())
    fmt::print("\n{}", plot(curve, {.unicode = locale_is_utf8(), .title = title, .x_label = "step"}));
}

}  // namespace

int run_plan(const Arguments& arguments) {
  const InterruptLua interruptible;
  const ResolvedRecipe recipe = resolve_recipe(recipe_request(arguments));
  PlanDevices devices;
  devices.num_ranks = arguments.integer("ranks", 1);
  devices.mfu = arguments.number("mfu", 0.01, 1);
  if (arguments.has("gpu")) devices.gpu = arguments.text("gpu");
  require_no_problems(check_config(recipe.config, devices.num_ranks), ExitCode::kTopology);
  const Plan plan = make_plan(recipe.config, devices);
  const bool json = arguments.has("json");
  fmt::print("{}", json ? plan_json(plan).dump(2) + "\n" : plan_text(plan, recipe.config));
  if (!json) print_schedule(recipe.config, plan);
  return 0;
}

}  // namespace tycho
