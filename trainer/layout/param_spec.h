// The structure of a model before any tensor exists: parameters, their units, activation slots.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/families/init.h"
#include "trainer/families/recompute_config.h"

namespace tycho {

using Shape = std::vector<int64_t>;
/// Product of the dims; 1 for a scalar.
int64_t numel(const Shape& shape);

/// Division of a parameter among the ranks along the mesh's tp axis: each has a part of every section.
struct TpCut {
  /// `count` items of `width` consecutive elements each: heads of head_dim, rows of the vocabulary.
  struct Section {
    int64_t count = 0, width = 1;
  };
  /// Contributions to a rank's gradient when every rank has the whole parameter: from all tokens, from the
  /// rank's own tokens where sequences are cut (sequence parallel), or from the rank's own heads.
  enum class Gradient { kWhole, kOfTokens, kOfHeads };

  std::vector<Section> sections = {};  // one after the other along `dim`; none: every rank has the whole
                                       // parameter
  int dim = 0;
  Gradient gradient = Gradient::kWhole;
};

/// Part of a parameter on a rank along tp (layout/tp_parts.h).
struct ParamPart {
  enum class Sum { kNone, kCopies, kAll };  // sum of gradients: over the ranks with the same run, or over all
  /// Consecutive elements along `dim`.
  struct Run {
    int64_t here = 0, there = 0, size = 0;  // first element, in this part and in the whole parameter
    bool counts = true;                     // false: a copy of a run that an earlier rank has
    int64_t copies = 1;                     // number of ranks with the same run
    Sum sum = Sum::kNone;
  };
  Shape whole;  // shape of the whole parameter
  int dim = 0;
  std::vector<Run>
      runs;  // in the order of `here`, without gaps; more than one only where all count or dim is 0
};

/// One parameter, named and ordered as in Hugging Face, or a rank's part of one.
struct ParamSpec {
  std::string name;  // "model.layers.3.mlp.down_proj.weight"
  Shape shape;       // shape of the part on this rank: the whole parameter unless `part` is set
  Init init;
  bool decay = true;
  bool frozen = false;  // no gradient is computed
  TpCut tp = {};
  std::optional<ParamPart> part = {};
  bool gives_logits = false;  // the head multiplies by it
  int64_t zero_rows = 0;      // rows of zeros that follow it in its unit's buffers (tp_units)
  bool coded = false;         // ranks that share it gather codes of fp8, with which it is multiplied

  /// Number of elements that it takes in its unit's buffers.
  int64_t room() const;
  const Shape& whole_shape() const { return part ? part->whole : shape; }
};

/// Parameters that are gathered and updated together: one block, the embedding, the head. Unit = flat buffer
/// = bucket = FSDP unit.
struct UnitSpec {
  std::string name;  // "model.layers.3"
  std::vector<ParamSpec> params;
  /// Consecutive matrices that are used as one, stacked by rows: q, k and v; gate and up; the matrix of the
  /// head and its zero rows. The k-th stack is view params.size() + k of the unit.
  struct Stack {
    int first = 0, count = 0;
  };
  std::vector<Stack> stacks;
  /// True below adapters: frozen, without master weights, and in no checkpoint, because the run started from
  /// these weights.
  bool base = false;
  int adapts = -1;  // for adapters: the unit of their layers
  int64_t numel() const;
  /// Index of the view of parameter i with its zero rows; i if it has none.
  size_t padded_view(size_t i) const;
  /// True if none of its parameters has a gradient.
  bool frozen() const;
};

/// Element type of a slot: the compute dtype of the run, or always fp32.
enum class SlotType { kCompute, kFp32 };

/// One activation tensor that the planner lays out.
struct SlotSpec {
  std::string name;
  Shape shape;
  SlotType type = SlotType::kCompute;
  Recompute again = Recompute::kFull;  // a block's: least mode that computes it again in backward
  bool kept = false;                   // a block's: never computed again, because other blocks use it
  bool of_head = false;                // outside of blocks: dead when the head returns
  bool of_library =
      false;  // a block's: LibTorch allocates it when it computes it, so it has no place in an arena
};

}  // namespace tycho
