// The instructions of programs over tiles of elements, as steps.
#pragma once
#include "trainer/expression/tile_code.h"
#include "trainer/kernels/cpu/expression/tile_function.h"
#include "trainer/kernels/cpu/simd.h"

namespace tycho::TYCHO_ISA {

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
