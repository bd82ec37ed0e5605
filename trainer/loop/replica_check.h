// Checks that replicas have not diverged: what `tycho run --paranoid` compares.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/train_config.h"
#include "trainer/loop/train_state.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/weight_average.h"
#include "trainer/parallel/communicator.h"
#include "trainer/units/owned_range.h"

namespace tycho {

/// What a rank has, by name, in one order on all ranks.
using RankFacts = std::vector<std::pair<std::string, std::string>>;

/// Where a rank is, and what its next step would use: `now` is the recipe as commands have changed it, `lr`
/// the learning rate.
RankFacts state_facts(const TrainState& state, const TrainConfig& now, double lr);
/// A checksum of what this rank owns of every parameter, of every tensor of the optimizer and of the average
/// (null: none), in forward order: comparable between ranks that own the same ranges. Reads them all.
RankFacts tensor_facts(const std::vector<OwnedRange>& ranges, Optimizer& optimizer,
                       WeightAverage* average = nullptr);

/// Collective. Throws Error (kTopology) on every rank when one differs from the first with the same `piece`
/// (which part of a copy of the model it owns), with the first name that does. `step`: how many are done.
void require_same_facts(Communicator& world, const RankFacts& mine, int64_t step, int piece = 0);

}  // namespace tycho
