// Functions of a logit before the softmax, on vectors: scale and soft cap.
#pragma once
#include "trainer/kernels/cpu/elementary.h"
#include "trainer/kernels/cpu/simd.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho::TYCHO_ISA {

// Result z of a logit x, and its slope where the result is z.
struct PlainLogits {
  static constexpr bool kIsIdentity = true;
  TYCHO_SIMD_MEMBER Vec operator()(Vec x) const { return x; }
  TYCHO_SIMD_MEMBER Vec slope(Vec) const { return broadcast(1.0f); }
};
struct ScaledLogits {
  static constexpr bool kIsIdentity = false;
  float scale;
  TYCHO_SIMD_MEMBER Vec operator()(Vec x) const { return x * scale; }
  TYCHO_SIMD_MEMBER Vec slope(Vec) const { return broadcast(scale); }
};
struct CappedLogits {
  static constexpr bool kIsIdentity = false;
  float scale, cap, inverse_cap;
  TYCHO_SIMD_MEMBER Vec operator()(Vec x) const {
    return hyperbolic_tangent(x * (scale * inverse_cap)) * cap;
  }
  TYCHO_SIMD_MEMBER Vec slope(Vec z) const {
    const Vec part = z * inverse_cap;
    return (1.0f - part * part) * scale;
  }
};

/// Calls body with the function object for these rules.
template <class Body>
TYCHO_SIMD void with_logit_curve(LogitRules rules, const Body& body) {
  if (rules.softcap != 0)
    body(CappedLogits{rules.scale, rules.softcap, 1.0f / rules.softcap});
  else if (rules.scale != 1)
    body(ScaledLogits{rules.scale});
  else
    body(PlainLogits{});
}

/// Returns the largest result in a row of n logits. NaN is passed over.
template <class T, class Curve>
TYCHO_SIMD float largest_logit(int64_t n, const T* x, Curve curve) {
  constexpr float kLowest = -__builtin_inff();
  Vec most = broadcast(kLowest);
  for_lanes(n, [&](int64_t i, auto lanes) {
    most = at_least(fill_rest(curve(load(x + i, lanes)), lanes, kLowest), most);
  });
  return max_lanes(most);
}

}  // namespace tycho::TYCHO_ISA
