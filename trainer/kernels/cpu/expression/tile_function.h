// A step of a program over tiles of elements: a function, and the places of its operands.
#pragma once
#include "trainer/expression/tile_code.h"
#include "trainer/kernels/cpu/simd.h"

namespace tycho::TYCHO_ISA {

/// Number of elements of a tile. It and the tiles of a program stay in the first cache.
inline constexpr int64_t kTile = 256;

struct TileStep;

/// Does one instruction for eight vectors, whose places begin at element `at` of tiles, and goes on with the
/// next step. The vectors hold the result of the step before, in registers.
using TileFunction = void (*)(const TileStep* step, float* const* places, int64_t at, Vec, Vec, Vec, Vec, Vec,
                              Vec, Vec, Vec);

/// One instruction or two with the function that does them. The result goes to the place `to`, which may be
/// an operand's, unless that is kRegisters.
struct TileStep {
  TileFunction function = nullptr;
  uint16_t to = 0, a = 0, b = 0, c = 0, d = 0;
};

/// Place of an operand: the result of the step before, fp32 memory, one number, or bf16 memory.
enum class From : uint8_t { kKept, kMemory, kNumber, kHalf };

}  // namespace tycho::TYCHO_ISA
