// The instructions of programs over tiles of elements.
#pragma once
#include "trainer/expression/tile_code.h"
#include "trainer/kernels/cpu/simd.h"

namespace tycho::TYCHO_ISA {

/// A place that instructions read. `step` is kLanes, or 0 for kLanes copies of one number.
struct TileOperand {
  const float* at = nullptr;
  int64_t step = kLanes;
};

/// Writes `count` results of an instruction to its place, which may be an operand.
using TileFunction = void (*)(const TileInstruction& instruction, const TileOperand* places, int64_t count);

/// Returns the loop of an instruction. `exponent` is the one number that kPow raises to, or null.
TileFunction tile_function(const TileInstruction& instruction, const float* exponent);

}  // namespace tycho::TYCHO_ISA
