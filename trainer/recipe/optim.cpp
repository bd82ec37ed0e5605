// The rules between the keys of optimizers, the guard and clipping.
#include "trainer/recipe/optim.h"

#include "trainer/base/config_problems.h"
#include "trainer/base/error.h"

namespace tycho {

std::optional<std::array<double, 2>> betas_of(const OptimizerConfig& optimizer) {
  return std::visit(
      []<class Kind>(const Kind& kind) -> std::optional<std::array<double, 2>> {
        if constexpr (CanBeDefined<Kind>) return kind.betas();
        if constexpr (requires { kind.betas; } && !CanBeDefined<Kind>) return kind.betas;
        return std::nullopt;
      },
      optimizer.value);
}

void set_betas(OptimizerConfig& optimizer, const std::array<double, 2>& betas) {
  std::visit(
      [&]<class Kind>(Kind& kind) {
        if constexpr (CanBeDefined<Kind>)
          kind.values["betas"] = betas;
        else if constexpr (requires { kind.betas; })
          kind.betas = betas;
      },
      optimizer.value);
}

void check(const OptimizerConfig& optimizer, ConfigProblems& problems) {
  if (const auto* sgd = std::get_if<SgdConfig>(&optimizer.value))
    problems.idle("optimizer.nesterov", sgd->nesterov, sgd->momentum > 0, "without optimizer.momentum");
  if (const auto* defined = std::get_if<DefinedOptimizerConfig>(&optimizer.value)) try {
      defined->check_updates();
      problems.add_all(defined->limit_problems());
    } catch (const Error& error) {
      problems.add("optimizer.updates", "{}", error.what());
    }
}

void check(const GuardConfig& guard, ConfigProblems& problems) {
  problems.idle("guard.max_skips", guard.max_skips != GuardConfig().max_skips,
                guard.action == GuardAction::kSkip, "unless guard.action = \"skip\"");
}

void check(const ClipConfig& clip, ConfigProblems& problems) {
  problems.idle("clip.norm", clip.norm != ClipConfig().norm && clip.norm != 0, !clip.by_element_or_row(),
                "together with clip.value or clip.adaptive");
  problems.idle("clip.adaptive", clip.adaptive.has_value(), !clip.value, "together with clip.value");
}

}  // namespace tycho
