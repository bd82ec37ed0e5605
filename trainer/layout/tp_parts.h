// The part of each parameter that a rank along the mesh's tp axis has: heads, hidden features and the
// vocabulary are cut into consecutive parts, everything else is on every rank. Torch-free.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/families/decoder_spec.h"
#include "trainer/layout/param_spec.h"
#include "trainer/layout/unit_layout.h"

namespace tycho {

/// Number of ranks along tp, and this rank's number.
struct TpShape {
  int64_t size = 1, rank = 0;
  bool sequence = true;  // norms, dropout and the residual stream hold size-th parts of the tokens

  bool cuts_tokens() const { return sequence && size > 1; }
  /// Returns the number of tokens of a micro-batch that this rank's residual stream has.
  int64_t own_tokens(int64_t tokens) const { return cuts_tokens() ? tokens / size : tokens; }
};

/// Items [begin, end) of `count` that a rank has. If there are fewer items than ranks, neighbouring ranks
/// have the same item. If the count does not divide, the first ranks have one item more.
struct TpItems {
  int64_t begin = 0, end = 0;
  bool counts = true;  // false: an earlier rank has the same items
  int64_t copies = 1;  // number of ranks that have the same items
  int64_t size() const { return end - begin; }
};
TpItems tp_items(int64_t count, const TpShape& tp);

/// Returns the spec that a rank computes with: its heads, hidden features and rows of the vocabulary.
DecoderSpec tp_spec(DecoderSpec spec, const TpShape& tp);

/// Returns a rank's part of a parameter, which is whole or another rank's part of it.
ParamSpec tp_part(ParamSpec param, const TpShape& tp);
/// Returns the units of a rank: parameters with their parts, unchanged for one rank. On a GPU zero rows
/// follow the matrix that gives logits, and a stack has both: see padded_rows().
std::vector<UnitSpec> tp_units(std::vector<UnitSpec> units, const TpShape& tp, bool on_gpu = false);

/// Returns the number of logits that a rank with `rows` of the vocabulary computes. On a GPU it is a multiple
/// of 64, because cuBLAS and the classifier read and write 16 bytes at once only where every row of logits
/// begins at a multiple of that.
int64_t padded_rows(int64_t rows, bool on_gpu);

/// Returns the parts of an extent, in the same buffer, that this rank counts in sums over all ranks: all of
/// it unless an earlier rank along tp has the same.
std::vector<Extent> counted(const Extent& extent);

/// Calls run(i, j, n) for elements [first, first + count) of the part of a parameter on this rank: its n
/// elements starting at `first` + i are the n elements of the whole parameter starting at j.
void for_whole_runs(const ParamSpec& spec, int64_t first, int64_t count,
                    const std::function<void(int64_t i, int64_t j, int64_t n)>& run);

}  // namespace tycho
