// What a prompt reads from an open run, in the engine's terms.
#pragma once
#include <utility>
#include <vector>

#include "trainer/data/loader/loader.h"
#include "trainer/eval/generation_state.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/param_rules.h"
#include "trainer/session/session.h"
#include "trainer/train/trainer.h"

namespace tycho {

SessionState session_state(const Trainer& trainer);
/// Returns the parameters of the whole model in forward order.
std::vector<ParamInfo> list_params(const ModelLayout& layout, const ParamRules& rules);
/// Returns the unit of each parameter, and its position in the unit.
std::vector<std::pair<size_t, size_t>> list_places(const ModelLayout& layout);
/// Returns the groups of parameters with the same settings. `places` holds the unit of each parameter, and
/// its position in the unit.
std::vector<OptimizerGroup> list_groups(const std::vector<ParamInfo>& params,
                                        const std::vector<std::pair<size_t, size_t>>& places,
                                        const ParamRules& rules);
GenerateOptions generate_options(const TextOptions& text);
/// Returns the next n sequences of a loader, which must be separate from training's.
std::vector<PeekedSequence> peek_sequences(DataLoader& loader, int64_t n);

}  // namespace tycho
