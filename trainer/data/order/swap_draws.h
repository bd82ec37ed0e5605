// Draws the swap partners of a shuffle in runs: enough words at once that drawing costs little, and that
// memory can be prefetched.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tycho {

class NumpyRng;

/// Draws of Generator.shuffle for fewer than 2^32 items. When all are made, the generator is in the state of
/// NumPy's.
class SwapDraws {
 public:
  SwapDraws(NumpyRng& rng, size_t num_items);

  /// Returns the last item that has no draw yet; 0 at the end.
  uint32_t item() const { return item_; }
  /// Returns the swap partners of item(), item() - 1, …: at most kRun and a few. Valid until the call after
  /// the next one. Empty at the end.
  std::span<const uint32_t> next();
  /// Makes all remaining draws without returning them.
  void skip();

 private:
  /// Length of a run. Two runs, the one being swapped and the next one, stay in the L1 cache together with a
  /// shard.
  static constexpr uint32_t kRun = 256;
  /// kWords: number of words that are drawn at once. kFew: number of items below which a level of the mask is
  /// too short for that.
  static constexpr uint32_t kWords = 16, kFew = 96;
  using Run = std::array<uint32_t, kRun + 2 * kWords>;

  /// Draws one word, which may not fit. Returns the number of items that got a draw, as the draw_ functions
  /// below do.
  uint32_t draw_word(uint32_t* others);
  /// Draws word by word until `last` items are left.
  uint32_t draw_each(uint32_t last, uint32_t* others);
  /// Draws sixteen words at a time until `last` items are left, or up to fifteen fewer. Requires no spare
  /// word, last >= kFew, and AVX2.
  uint32_t draw_sixteens(uint32_t last, uint32_t* others);
  void skip_sixteens(uint32_t last);
  template <bool kKeep>
  uint32_t draw_many(uint32_t last, uint32_t* others);
  void load_lanes();
  bool sixteens_fit() const;

  NumpyRng& rng_;
  uint32_t item_;
  bool odd_ = false, loaded_ = false;
  /// The next eight states of the generator: their low halves, then their high halves.
  alignas(32) std::array<uint64_t, 16> lanes_;
  std::array<Run, 2> runs_;
};

}  // namespace tycho
