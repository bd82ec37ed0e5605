// The instructions of programs over tiles of elements.
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

/// An instruction with the function that does it. The result goes to the place `to`, which may be an
/// operand's, unless that is kRegisters.
struct TileStep {
  TileFunction function = nullptr;
  uint16_t to = 0, a = 0, b = 0, c = 0;
};

/// Returns the number of steps that a program has at most.
TYCHO_SIMD int64_t most_steps(const TileProgram& program) {
  return program.num_instructions + program.num_arrays + 1;
}

/// Writes the steps of the program, and one that ends it, to `steps`. is_number(place) is true where all
/// elements of a tile are one number, as constants are; streams[array] where its place is memory, whose later
/// elements are asked for while these are computed.
void write_steps(const TileProgram& program, const bool* is_number, const bool* streams, TileStep* steps);

/// Runs steps over a tile.
void run_steps(const TileStep* steps, float* const* places);

}  // namespace tycho::TYCHO_ISA
