// The CPU kernels of one instruction set; contracts in kernels/<op>.h, roles in kernel_table.h.
#pragma once
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho::TYCHO_ISA {

const KernelTable& table();

TYCHO_KERNELS(TYCHO_DECLARE_KERNEL)
TYCHO_CPU_ONLY_KERNELS(TYCHO_DECLARE_KERNEL)

}  // namespace tycho::TYCHO_ISA
