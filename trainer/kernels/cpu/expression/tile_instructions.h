// The instructions of programs over tiles of elements.
#pragma once
#include "trainer/expression/tile_code.h"
#include "trainer/kernels/cpu/simd.h"

namespace tycho::TYCHO_ISA {

/// Number of elements of a tile: small enough that a CPU works on the next instruction while it still divides
/// for this one.
inline constexpr int64_t kTile = 128;

/// Writes a tile of results of an instruction to its place, which may be an operand's. Places are tiles.
using TileFunction = void (*)(const TileInstruction& instruction, float* const* places);

/// Returns the loop of an instruction. `exponent` is the one number that kPow raises to, or null.
TileFunction tile_function(const TileInstruction& instruction, const float* exponent);

}  // namespace tycho::TYCHO_ISA
