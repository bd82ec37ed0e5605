// What a shuffle swaps with, drawn in runs: so many words at once that drawing costs little, and memory has
// time to fetch what is swapped.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tycho {

class NumpyRng;

/// The draws of Generator.shuffle for so many items, fewer than 2^32. When all are made the generator is
/// where NumPy's is.
class SwapDraws {
 public:
  SwapDraws(NumpyRng& rng, size_t num_items);

  /// The last item that has not been drawn for; 0 at the end.
  uint32_t item() const { return item_; }
  /// Of item(), item() - 1, …: what each is swapped with, at most kRun and a few. Kept until the call after
  /// the next one. Empty at the end.
  std::span<const uint32_t> next();
  /// Draws for all that are left.
  void skip();

 private:
  /// Two runs, the one that is swapped and the next one, stay in the first cache beside a shard.
  static constexpr uint32_t kRun = 256;
  /// Words that are drawn at once, and the items below which a level of the mask is too short for that.
  static constexpr uint32_t kWords = 16, kFew = 96;
  using Run = std::array<uint32_t, kRun + 2 * kWords>;

  /// Draws one word, which may not fit. Like those that follow it returns how many items were drawn for.
  uint32_t draw_word(uint32_t* others);
  /// Draws until `last` items are left, word by word.
  uint32_t draw_each(uint32_t last, uint32_t* others);
  /// The same, sixteen words at a time, and may go on for fifteen items. No spare word, last >= kFew. Needs
  /// AVX2.
  uint32_t draw_sixteens(uint32_t last, uint32_t* others);
  void skip_sixteens(uint32_t last);
  template <bool kKeep>
  uint32_t draw_many(uint32_t last, uint32_t* others);
  void load_lanes();
  bool sixteens_fit() const;

  NumpyRng& rng_;
  uint32_t item_;
  bool odd_ = false, loaded_ = false;
  /// The eight next states of the generator: their low halves, then their high ones.
  alignas(32) std::array<uint64_t, 16> lanes_;
  std::array<Run, 2> runs_;
};

}  // namespace tycho
