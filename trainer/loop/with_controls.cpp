// Overlays the commands' values on a copy of the recipe's config.
#include "trainer/loop/with_controls.h"

#include "trainer/base/error.h"
#include "trainer/config/config_io.h"

namespace tycho {
namespace {

SchedulerConfig read_scheduler(const TrainConfig& recipe, const Json& scheduler) {
  Json tree = config_to_json(recipe);
  tree["scheduler"] = scheduler;
  return read_config_or_fail(tree).scheduler;
}

}  // namespace

TrainConfig with_controls(const TrainConfig& recipe, const Controls& controls) {
  TrainConfig config = recipe;
  if (!controls.scheduler.is_null()) config.scheduler = read_scheduler(recipe, controls.scheduler);
  if (controls.clip_norm) config.clip.norm = *controls.clip_norm;
  if (controls.log_every) config.log.every = *controls.log_every;
  std::visit(
      [&](auto& optimizer) {
        if constexpr (requires { optimizer.betas; }) {
          if (controls.betas) optimizer.betas = *controls.betas;
        } else if (controls.betas) {
          fail(ExitCode::kRecipe, "[cmd.set_betas] {} has no betas", recipe.optimizer.kind());
        }
        if (controls.weight_decay) optimizer.weight_decay = *controls.weight_decay;
      },
      config.optimizer.value);
  return config;
}

}  // namespace tycho
