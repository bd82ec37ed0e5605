// The table of one instruction set's kernels.
#include "trainer/kernels/cpu/kernels.h"

#define TYCHO_TEXT_OF(x) #x
#define TYCHO_TEXT(x) TYCHO_TEXT_OF(x)

namespace tycho::TYCHO_ISA {

const KernelTable& table() {
  static constexpr KernelTable kTable{.name = "cpu " TYCHO_TEXT(TYCHO_ISA),  //
                                      TYCHO_KERNELS(TYCHO_TABLE_ENTRY)
                                          TYCHO_CPU_ONLY_KERNELS(TYCHO_TABLE_ENTRY)};
  return kTable;
}

}  // namespace tycho::TYCHO_ISA
