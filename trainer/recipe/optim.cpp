// The rules between the keys of optimizers, the guard and clipping.
#include "trainer/recipe/optim.h"

#include "trainer/base/config_problems.h"

namespace tycho {

void check(const OptimizerConfig& optimizer, ConfigProblems& problems) {
  if (const auto* sgd = std::get_if<SgdConfig>(&optimizer.value))
    problems.idle("optimizer.nesterov", sgd->nesterov, sgd->momentum > 0, "without optimizer.momentum");
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
