// The structure of a model before any tensor exists: parameters, their units, activation slots.
#pragma once
#include <cstdint>
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

/// One parameter, as Hugging Face names and orders it.
struct ParamSpec {
  std::string name;  // "model.layers.3.mlp.down_proj.weight"
  Shape shape;       // global shape
  Init init;
  bool decay = true;
  bool frozen = false;  // no gradient is computed
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
