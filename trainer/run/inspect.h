// What a prompt reads from an open run, in the engine's terms.
#pragma once
#include <utility>
#include <vector>

#include "trainer/data/loader/loader.h"
#include "trainer/generate/generate.h"
#include "trainer/optim/param_rules.h"
#include "trainer/parallel/unit_store.h"
#include "trainer/session/session.h"

namespace tycho {

/// The parameters in forward order.
std::vector<ParamInfo> list_params(const UnitStore& units, const ParamRules& rules, int64_t num_blocks);
/// The parameters that the optimizer treats alike. `places`: of each parameter its unit, and its position
/// there.
std::vector<OptimizerGroup> list_groups(const std::vector<ParamInfo>& params,
                                        const std::vector<std::pair<size_t, size_t>>& places,
                                        const ParamRules& rules);
GenerateOptions generate_options(const TextOptions& text);
/// The next n sequences of a loader of its own.
std::vector<PeekedSequence> peek_sequences(DataLoader& loader, int64_t n);

}  // namespace tycho
