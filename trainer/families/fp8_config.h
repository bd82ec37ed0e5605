// Which linear layers multiply in fp8, and how their operands are scaled: torchao's recipes.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/fields.h"

namespace tycho {

enum class Fp8Recipe { kNone, kTensorwise, kRowwise, kRowwiseWithGwHp };
constexpr EnumNames<Fp8Recipe, 4> enum_names(Fp8Recipe) {
  return {{{"none", Fp8Recipe::kNone},
           {"tensorwise", Fp8Recipe::kTensorwise},
           {"rowwise", Fp8Recipe::kRowwise},
           {"rowwise_with_gw_hp", Fp8Recipe::kRowwiseWithGwHp}}};
}

struct Fp8Config {
  Fp8Recipe recipe = Fp8Recipe::kNone;
  std::vector<std::string> skip;
  bool skip_small = false;
  bool gather = false;

  template <class Visitor>
  void fields(Visitor& v) {
    v("recipe", recipe,
      "Scales of operands, as in torchao: tensorwise (one of a matrix), rowwise (one of a row or column, a "
      "power of "
      "two), rowwise_with_gw_hp (as rowwise, but gradients of weights are products of bf16), none (no fp8). "
      "The linear layers of the blocks multiply in fp8, the head does not. Needs precision = \"bf16\". Has "
      "not "
      "run on a GPU yet; on CPUs it is slower than bf16.");
    v("skip", skip,
      "Parts of names of linear layers that stay bf16, such as \"down_proj\" or \"layers.0.\".");
    v("skip_small", skip_small,
      "Layers stay bf16 where torchao found no gain on an H100. Layers that are multiplied together (q, k "
      "and v; "
      "gate and up) count as one.");
    v("gather", gather,
      "Ranks that share parameters (parallel.dp_shard, parallel.cp) gather the matrices of these layers as "
      "codes of one byte, not as bf16. Needs recipe = \"tensorwise\". The same bits as without; nothing is "
      "gathered where no ranks share parameters.");
  }

  bool is_used() const { return recipe != Fp8Recipe::kNone; }
};

}  // namespace tycho
