// The structure of a model before any tensor exists: parameters, their units, activation slots.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tycho {

using Shape = std::vector<int64_t>;
/// Product of the dims; 1 for a scalar.
int64_t numel(const Shape& shape);

/// How an element starts. Drawn from (seed, parameter name, element index): the same bits on every topology.
struct Init {
  enum class Kind { kNormal, kCutNormal, kUniform, kOnes, kZeros };
  Kind kind = Kind::kNormal;
  double scale = 0.02;  // normal: standard deviation, cut at three of them; uniform: half of its width
  double middle = 0;    // of uniform
};

/// How the ranks along the mesh's tp axis share a parameter: each has a part of every section.
struct TpCut {
  /// `count` items of `width` neighbours each: heads of head_dim, rows of the vocabulary.
  struct Section {
    int64_t count = 0, width = 1;
  };
  /// What a rank's gradient is of when every rank has the whole parameter: of all that passes through it, of
  /// the rank's own tokens where sequences are cut (sequence parallel), or of the rank's own heads.
  enum class Gradient { kWhole, kOfTokens, kOfHeads };

  std::vector<Section> sections = {};  // one after the other along `dim`; none: every rank has all of it
  int dim = 0;
  Gradient gradient = Gradient::kWhole;
};

/// What of a parameter lies on a rank along tp (layout/tp_parts.h).
struct ParamPart {
  enum class Sum { kNone, kCopies, kAll };  // of gradients: over the ranks with the same run, or over all
  /// Neighbours along `dim`.
  struct Run {
    int64_t here = 0, there = 0, size = 0;  // the first one: in this part, in the whole parameter
    bool counts = true;                     // false: a copy of what an earlier rank has
    int64_t copies = 1;                     // ranks with the same run
    Sum sum = Sum::kNone;
  };
  Shape whole;  // of the parameter
  int dim = 0;
  std::vector<Run>
      runs;  // in the order of `here`, without gaps; more than one only where all count or dim is 0
};

/// One parameter, as Hugging Face names and orders it, or a rank's part of one.
struct ParamSpec {
  std::string name;  // "model.layers.3.mlp.down_proj.weight"
  Shape shape;       // of what is here: the whole parameter unless it has a part
  Init init;
  bool decay = true;
  bool frozen = false;  // no gradient is computed
  TpCut tp = {};
  std::optional<ParamPart> part = {};

  const Shape& whole_shape() const { return part ? part->whole : shape; }
};

/// Parameters that are gathered and updated together: one block, the embedding, the head. Unit = flat buffer
/// = bucket = FSDP unit.
struct UnitSpec {
  std::string name;  // "model.layers.3"
  std::vector<ParamSpec> params;
  /// Matrices that lie one after the other and are used as one, stacked by rows: q, k and v; gate and up. The
  /// k-th is view params.size() + k of the unit.
  struct Stack {
    int first = 0, count = 0;
  };
  std::vector<Stack> stacks;
  /// Under adapters: frozen, without master weights, and in no checkpoint, since it is what the run started
  /// from.
  bool base = false;
  int adapts = -1;  // of adapters: the unit of their layers
  int64_t numel() const;
  /// Whether none of its parameters has a gradient.
  bool frozen() const;
};

/// Element type of a slot: the compute dtype of the run, or always fp32.
enum class SlotType { kCompute, kFp32 };

/// One activation tensor that the planner lays out.
struct SlotSpec {
  std::string name;
  Shape shape;
  SlotType type = SlotType::kCompute;
  bool cheap = false;  // a block's: computed again under selective recompute
  bool kept = false;   // a block's: never computed again, for other blocks use it
};

}  // namespace tycho
