// The parameters that weight decay acts on.
#pragma once
#include "trainer/base/fields.h"

namespace tycho {

/// The parameters that weight decay acts on. Groups with a weight_decay of their own always decay.
enum class DecayMask { kMatrices, kHidden, kAll };
constexpr EnumNames<DecayMask, 3> enum_names(DecayMask) {
  return {{{"matrices", DecayMask::kMatrices}, {"hidden", DecayMask::kHidden}, {"all", DecayMask::kAll}}};
}
inline constexpr const char* kDecayMaskHelp =
    "What decays: matrices excludes norms and biases; hidden also excludes embeddings and head; all excludes "
    "nothing, like Composer and TorchTitan.";

}  // namespace tycho
