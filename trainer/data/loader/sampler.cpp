// The order is computed once per epoch, so that any position of it can be resumed at without replaying
// batches.
#include "trainer/data/loader/sampler.h"

#include <numeric>
#include <span>

#include "trainer/base/error.h"
#include "trainer/data/loader/numpy_rng.h"

namespace tycho {

std::vector<uint32_t> epoch_order(int64_t num_samples, bool shuffle, uint64_t seed, int64_t epoch) {
  TYCHO_CHECK(num_samples >= 0 && num_samples < int64_t{1} << 32, "[sampler] at most 2^32-1 samples, got {}",
              num_samples);
  std::vector<uint32_t> order(static_cast<size_t>(num_samples));
  std::iota(order.begin(), order.end(), 0u);
  if (shuffle) NumpyRng(seed + static_cast<uint64_t>(epoch)).shuffle(std::span(order));
  return order;
}

}  // namespace tycho
