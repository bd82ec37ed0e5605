// Not finite is wrong everywhere; a norm that is too large is wrong where the recipe has a limit.
#include "trainer/train/step_guard.h"

#include <cmath>

#include "trainer/base/error.h"
#include "trainer/base/function_ref.h"
#include "trainer/base/json.h"
#include "trainer/metrics/format.h"
#include "trainer/recipe/config_io.h"

namespace tycho {
namespace {

/// Adds "PATH (file:line)" for each function of the recipe that `part` computes with.
void add_functions(const Json& part, const std::string& path, std::string& out) {
  if (!part.is_object()) return;
  for (const auto& [key, value] : part.items()) {
    if (key == "code" && is_function_ref(value) && !value.at("at").get_ref<const std::string&>().empty())
      out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", path,
                         value.at("at").get_ref<const std::string&>());
    else
      add_functions(value, path + "." + key, out);
  }
}

/// Returns advice on the mathematics that the recipe itself defines, "" if it defines none.
std::string own_functions(const TrainConfig& recipe) {
  const Json config = config_to_json(recipe);
  std::string found;
  for (const char* key : {"model", "loss", "optimizer", "init"})
    if (const auto part = config.find(key); part != config.end()) add_functions(*part, key, found);
  if (found.empty()) return "";
  return fmt::format(
      " The recipe computes with functions of its own, {}: a division by 0, a log or sqrt of a number below "
      "0, "
      "or an exp that overflows, in a function or in its derivative, is NaN at every learning rate; t.max "
      "and "
      "t.where keep away from such points.",
      found);
}

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
  const auto cause = [&] { return finite ? "" : own_functions(recipe); };
  if (guard.action == GuardAction::kStop) stop_diverged(state, what, cause());
  if (state.skipped_in_a_row + 1 > guard.max_skips)
    stop_diverged(state, fmt::format("{} after {} skipped steps in a row", what, state.skipped_in_a_row),
                  cause());
  ++state.skipped;
  ++state.skipped_in_a_row;
  return what;
}

}  // namespace tycho
