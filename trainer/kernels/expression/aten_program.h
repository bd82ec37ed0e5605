// Programs by ATen's operations, for devices without a kernel for them.
#pragma once
#include <vector>

#include "trainer/expression/program.h"
#include "trainer/expression/tile_code.h"
#include "trainer/expression/tile_compiler.h"
#include "trainer/kernels/expression/run_program.h"

namespace tycho {

/// Runs a program over `numel` elements, one instruction after the other over chunks of a few million, on the
/// tensors' device. Results are rounded as by the CPU's kernel: exact operations have its bits, functions
/// those of ATen. Requires tensors that run_program takes.
void run_program_by_aten(const TileProgram& program, const std::vector<ProgramArray>& wanted,
                         const std::vector<ProgramTensor>& arrays, int64_t numel);

}  // namespace tycho
