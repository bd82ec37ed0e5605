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

/// One instruction or two with the function that does them. The result goes to the place `to`, which may be
/// an operand's, unless that is kRegisters.
struct TileStep {
  TileFunction function = nullptr;
  uint16_t to = 0, a = 0, b = 0, c = 0, d = 0;
};

/// Place of an operand: the result of the step before, fp32 memory, one number, or bf16 memory.
enum class From : uint8_t { kKept, kMemory, kNumber, kHalf };

/// Returns the number of steps that a program has at most: each array may be asked for, and written in bf16.
TYCHO_SIMD int64_t most_steps(const TileProgram& program) {
  return program.num_instructions + 2 * program.num_arrays + 1;
}

/// Returns true if the steps of the program may read and write an array that is bf16: none reads what another
/// has written, which is rounded there.
bool reads_in_place(const TileProgram& program, uint16_t array);

/// Writes the steps of the program, and one that ends it, to `steps`. `from` says what each place is;
/// streams[array] is true where the place is memory, whose later elements are asked for while these are
/// computed.
void write_steps(const TileProgram& program, const From* from, const bool* streams, TileStep* steps);

/// Runs steps over a tile.
void run_steps(const TileStep* steps, float* const* places);

}  // namespace tycho::TYCHO_ISA
