// Not finite is wrong everywhere; a norm that is too large is wrong where the recipe has a limit.
#include "trainer/train/step_guard.h"

#include <cmath>

#include "trainer/base/error.h"
#include "trainer/metrics/format.h"
#include "trainer/recipe/config_io.h"
#include "trainer/recipe/own_functions.h"

namespace tycho {
namespace {

[[noreturn]] void stop_diverged(const TrainState& state, const std::string& what, const std::string& cause) {
  fail(
      ExitCode::kNumerics,
      "[trainer] {} at step {}: training has diverged and stops before it damages the weights.{} Checkpoints "
      "are untouched; resume from one with a lower optimizer.lr, a longer scheduler.t_warmup or a tighter "
      "clip.norm, or skip such steps with guard.action = \"skip\"",
      what, state.step + 1, cause);
}

}  // namespace

std::string wrong_with_step(const TrainConfig& recipe, TrainState& state, double loss, double grad_norm) {
  const GuardConfig& guard = recipe.guard;
  const bool finite = std::isfinite(loss) && std::isfinite(grad_norm);
  if (finite && grad_norm <= guard.max_grad_norm.value_or(grad_norm)) {
    state.skipped_in_a_row = 0;
    return "";
  }
  std::string what = fmt::format("loss {} and gradient norm {}", exact_text(loss), exact_text(grad_norm));
  if (finite) what += fmt::format(", above guard.max_grad_norm = {},", *guard.max_grad_norm);
  const auto cause = [&] { return finite ? "" : own_functions_advice(config_to_json(recipe)); };
  if (guard.action == GuardAction::kStop) stop_diverged(state, what, cause());
  if (state.skipped_in_a_row + 1 > guard.max_skips)
    stop_diverged(state, fmt::format("{} after {} skipped steps in a row", what, state.skipped_in_a_row),
                  cause());
  ++state.skipped;
  ++state.skipped_in_a_row;
  return what;
}

}  // namespace tycho
