// The non-linear functions of feed-forwards, by the names that recipes use. Kernels of every instruction set
// include it, so no fields.h.
#pragma once
#include <array>
#include <utility>

namespace tycho {

/// gelu is the exact one, with erf; quick_gelu is x sigmoid(1.702 x).
enum class Activation { kGelu, kGeluTanh, kQuickGelu, kRelu, kSilu };
constexpr std::array<std::pair<const char*, Activation>, 5> enum_names(Activation) {
  return {{{"gelu", Activation::kGelu},
           {"gelu_tanh", Activation::kGeluTanh},
           {"quick_gelu", Activation::kQuickGelu},
           {"relu", Activation::kRelu},
           {"silu", Activation::kSilu}}};
}

}  // namespace tycho
