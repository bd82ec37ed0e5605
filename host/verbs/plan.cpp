// tycho plan: what a run will take, before it is started.
#include "trainer/plan/plan.h"

#include "host/signals.h"
#include "host/verb.h"

namespace tycho {

const VerbSpec kPlanSpec = {"plan RECIPE [key=value ...]",
                            "Says what a run will take: parameters, memory, FLOPs, steps, disk.",
                            "  tycho plan recipes/demo.lua model.layers=8",
                            {kJsonOption, kTraceOption}};

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
          {"memory", memory},
          {"memory_bytes", plan.memory_bytes},
          {"checkpoint_bytes", plan.checkpoint_bytes},
          {"disk_bytes", plan.disk_bytes}};
}

}  // namespace

int run_plan(const Arguments& arguments) {
  const InterruptLua interruptible;
  const ResolvedRecipe recipe = resolve_recipe(recipe_request(arguments));
  const Plan plan = make_plan(recipe.config);
  const bool json = arguments.has("json");
  fmt::print("{}", json ? plan_json(plan).dump(2) + "\n" : plan_text(plan, recipe.config));
  return 0;
}

}  // namespace tycho
