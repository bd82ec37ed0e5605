// The order of samples: a pure function of seed and epoch.
#pragma once
#include <cstdint>
#include <vector>

namespace tycho {

/// The samples of one epoch in the order in which they are used: numpy's default_rng(seed +
/// epoch).permutation, which is mosaicml-streaming's shuffle "naive"; in file order without `shuffle`.
/// num_samples < 2^32.
std::vector<uint32_t> epoch_order(int64_t num_samples, bool shuffle, uint64_t seed, int64_t epoch);

}  // namespace tycho
