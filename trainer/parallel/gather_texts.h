// Small texts and numbers from rank to rank: what callbacks failed of, what was commanded, what they reduce.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "trainer/callback.h"
#include "trainer/parallel/communicator.h"

namespace tycho {

/// One text of every rank, by rank. Collective; one small reduction while all of them are empty. `device`:
/// where the group's tensors are.
std::vector<std::string> gather_texts(Communicator& world, const at::Device& device, const std::string& mine);

/// Reductions for callbacks over a group, which outlives them.
std::unique_ptr<Dist> make_dist(Communicator& world, const at::Device& device);

}  // namespace tycho
