// Checks that replicas have not diverged: what `tycho run --paranoid` compares.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/weight_average.h"
#include "trainer/recipe/train_config.h"
#include "trainer/sharding/owned_range.h"
#include "trainer/state/train_state.h"

namespace tycho {

/// Facts of a rank by name, in the same order on all ranks.
using RankFacts = std::vector<std::pair<std::string, std::string>>;

/// Returns the state of a rank, and the settings of its next step: `now` is the recipe as changed by
/// commands, `lr` the learning rate.
RankFacts state_facts(const TrainState& state, const TrainConfig& now, double lr);
/// Returns a checksum of this rank's part of every parameter, of every tensor of the optimizer and of the
/// average (null: none), in forward order. Comparable between ranks that own the same ranges. Reads them all.
RankFacts tensor_facts(const std::vector<OwnedRange>& ranges, Optimizer& optimizer,
                       WeightAverage* average = nullptr);

/// Throws Error (kTopology) on every rank when one differs from the first rank with the same `piece` (which
/// part of a copy of the model it owns), with the first name that differs. `step` is the number of steps
/// done. Collective.
void require_same_facts(Communicator& world, const RankFacts& mine, int64_t step, int piece = 0);

}  // namespace tycho
