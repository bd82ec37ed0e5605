// Which activations are computed again in backward instead of kept.
#pragma once
#include <cstdint>

#include "trainer/base/fields.h"

namespace tycho {

/// Each mode but kAuto recomputes what those before it do.
enum class Recompute { kNone, kNorms, kSelective, kFull, kAuto };
constexpr EnumNames<Recompute, 5> enum_names(Recompute) {
  return {{{"none", Recompute::kNone},
           {"norms", Recompute::kNorms},
           {"selective", Recompute::kSelective},
           {"full", Recompute::kFull},
           {"auto", Recompute::kAuto}}};
}

/// Trades time for memory, block by block (Chen et al. 2016, arXiv:1604.06174).
struct RecomputeConfig {
  Recompute mode = Recompute::kNone;
  int64_t every = 1;

  template <class Visitor>
  void fields(Visitor& v) {
    v("mode", mode,
      "none; norms: recompute norms; selective: also the first matrix of the feed-forward layer; full: "
      "everything but a block's input; auto: the fastest of these that fits into memory; a run prints it and "
      "keeps it in its recipe.");
    v("every", every, "Only every n-th block, starting with the first.", positive);
  }
  /// Returns the mode of block `layer`, counted from 0. "auto" counts as none until a run or a plan has
  /// chosen (plan/memory_choice.h).
  Recompute of(int64_t layer) const {
    return layer % every == 0 && mode != Recompute::kAuto ? mode : Recompute::kNone;
  }
};

}  // namespace tycho
