// Expressions to instructions over tiles.
#pragma once
#include <string>
#include <vector>

#include "trainer/expression/expression.h"
#include "trainer/expression/tile_code.h"

namespace tycho {

/// Memory of a program: elements that it reads, writes or both. An input and an output of one name are the
/// same memory.
struct ProgramArray {
  std::string name;
  bool read = false, written = false;
  bool one = false;  // one number for all elements: an input of shape [1, 1]
};

struct CompiledTiles {
  std::vector<ProgramArray> arrays;  // element inputs, then other element outputs
  std::vector<TileInstruction> instructions;
  std::vector<int32_t> constants;  // scalar nodes that meet elements
  int32_t num_temporaries = 0;
};

/// Compiles an elementwise expression: neighbouring operations are fused, temporaries share few tiles, and
/// within a tile everything that an array held is read before the array is written. Outputs whose node is a
/// scalar are left out, unless an input of elements has their name. Throws Error (kRecipe) that names the
/// line of a reduction, a matrix operation or values of several shapes.
CompiledTiles compile_tiles(const Expression& expression);

}  // namespace tycho
