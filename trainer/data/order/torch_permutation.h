// PyTorch's random permutations, from which its DistributedSampler takes an epoch's order.
#pragma once
#include <cstdint>
#include <span>

namespace tycho {

/// Writes torch.randperm(ids.size()) of a CPU generator with this seed: 0, 1, … in that order. Throws Error
/// (kUnusable) for 214,748,364 ids or more, where PyTorch draws otherwise.
void torch_permutation(std::span<uint32_t> ids, uint64_t seed);

}  // namespace tycho
