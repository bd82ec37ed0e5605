// Products of bf16 with special instructions, and the table of an instruction set that differs from
// TYCHO_BASE_ISA only in these products.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/matmul/direct_products.h"
#if defined(__AMX_BF16__)
#include "trainer/kernels/cpu/matmul/amx_tiles.h"
#else
#include "trainer/kernels/cpu/matmul/pair_tiles.h"
#endif
#include "trainer/kernels/cpu/table_name.h"

namespace tycho::TYCHO_BASE_ISA {
const KernelTable& table();
}

namespace tycho::TYCHO_ISA {
namespace {

#if defined(__AMX_BF16__)
using Tiles = AmxTiles;
#else
using Tiles = PairTiles;
#endif
/// Largest number of rows for which a product takes as long as reading the weights once, with any
/// instructions.
constexpr int64_t kFewRows = 8;

KernelTable with_matmul(KernelTable table) {
  table.name = TYCHO_TABLE_NAME;
  table.matmul = &matmul;
  return table;
}

}  // namespace

void matmul(MatmulShape shape, MatmulOperand left, MatmulOperand right, MatmulResult result, Stream stream) {
  const bool few = shape.rows <= kFewRows && left.depth_step == 1;
  if (!few && left.dtype == Dtype::kBf16 && right.dtype == Dtype::kBf16 &&
      direct_product<Tiles>(shape, left, right, result))
    return;
  TYCHO_BASE_ISA::table().matmul(shape, left, right, result, stream);
}

const KernelTable& table() {
  static const KernelTable kTable = with_matmul(TYCHO_BASE_ISA::table());
  return kTable;
}

}  // namespace tycho::TYCHO_ISA
