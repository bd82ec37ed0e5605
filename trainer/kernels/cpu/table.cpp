// The table of one instruction set's kernels.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/table_name.h"

namespace tycho::TYCHO_ISA {

const KernelTable& table() {
  static constexpr KernelTable kTable{
      .name = TYCHO_TABLE_NAME, TYCHO_KERNELS(TYCHO_TABLE_ENTRY) TYCHO_CPU_ONLY_KERNELS(TYCHO_TABLE_ENTRY)};
  return kTable;
}

}  // namespace tycho::TYCHO_ISA
