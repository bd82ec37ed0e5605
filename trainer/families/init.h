// Initial values of parameters.
#pragma once

namespace tycho {

/// Initial value of an element. It is drawn from (seed, parameter name, element index): the same bits on
/// every topology.
struct Init {
  enum class Kind { kNormal, kCutNormal, kUniform, kUnit, kOnes, kZeros };
  Kind kind = Kind::kNormal;
  double scale =
      0.02;  // normal: standard deviation, cut at three of them; uniform: half of its width; unit: [0, 1)
  double middle = 0;  // for uniform
};

}  // namespace tycho
