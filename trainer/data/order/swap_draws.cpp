// Draws word by word, as NumPy does, without AVX2 and for the last items.
#include "trainer/data/order/swap_draws.h"

#include <algorithm>
#include <bit>

#include "trainer/data/order/numpy_rng.h"

namespace tycho {

SwapDraws::SwapDraws(NumpyRng& rng, size_t num_items)
    : rng_(rng), item_(static_cast<uint32_t>(std::max<size_t>(num_items, 1) - 1)) {}

bool SwapDraws::sixteens_fit() const { return NumpyRng::has_avx2() && item_ > kFew && item_ <= INT32_MAX; }

std::span<const uint32_t> SwapDraws::next() {
  odd_ = !odd_;
  uint32_t* const others = runs_[odd_ ? 1 : 0].data();
  uint32_t count = 0;
  const uint32_t last = item_ - std::min(item_, kRun);
#if defined(__x86_64__)
  if (sixteens_fit()) {
    if (rng_.has_spare_) count += draw_word(others);
    if (item_ > kFew) count += draw_sixteens(std::max(last, kFew), others + count);
    return {others, count};
  }
#endif
  count += draw_each(last, others);
  return {others, count};
}

void SwapDraws::skip() {
#if defined(__x86_64__)
  while (item_ > 0 && !sixteens_fit()) next();
  if (item_ == 0) return;
  if (rng_.has_spare_) draw_word(runs_[0].data());
  if (item_ > kFew) skip_sixteens(kFew);
#endif
  while (item_ > 0) next();
}

uint32_t SwapDraws::draw_word(uint32_t* others) {
  others[0] = rng_.next32() & UINT32_MAX >> std::countl_zero(item_);
  const uint32_t taken = others[0] <= item_ ? 1 : 0;
  item_ -= taken;
  return taken;
}

// A word that does not fit is overwritten by the next one. This happens for a quarter of all words, so a
// branch would often be mispredicted.
uint32_t SwapDraws::draw_each(uint32_t last, uint32_t* others) {
  const uint32_t first = item_;
  uint32_t i = first;
  while (i > last) {
    const uint32_t mask = UINT32_MAX >> std::countl_zero(i);
    for (const uint32_t end = std::max(mask >> 1, last); i > end;) {
      const uint32_t drawn = rng_.next32() & mask;
      others[first - i] = drawn;
      i -= drawn <= i;
    }
  }
  item_ = i;
  return first - i;
}

}  // namespace tycho
