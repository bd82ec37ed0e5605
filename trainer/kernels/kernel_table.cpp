// Which table serves a device.
#include "trainer/kernels/kernel_table.h"

#include <cstdlib>

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"

namespace tycho {

namespace generic {
const KernelTable& table();
}
#ifdef TYCHO_X86_KERNELS
namespace avx2 {
const KernelTable& table();
}
namespace avx512 {
const KernelTable& table();
}
#endif

namespace {

const KernelTable* cuda_table = nullptr;

const KernelTable& choose_cpu_kernels() {
  if (const char* wanted = std::getenv("TYCHO_CPU"); wanted && *wanted) {
    const KernelTable* table = cpu_kernels_for(wanted);
    if (!table)
      fail(ExitCode::kUsage,
           "[kernels] TYCHO_CPU wanted generic, avx2 or avx512 that this CPU can run, got '{}'. Unset it to "
           "let Tycho choose",
           wanted);
    return *table;
  }
  for (const char* name : {"avx512", "avx2"})
    if (const KernelTable* table = cpu_kernels_for(name)) return *table;
  return generic::table();
}

}  // namespace

const KernelTable* cpu_kernels_for(std::string_view instruction_set) {
#ifdef TYCHO_X86_KERNELS
  if (instruction_set == "avx512" && __builtin_cpu_supports("x86-64-v4")) return &avx512::table();
  if (instruction_set == "avx2" && __builtin_cpu_supports("x86-64-v3")) return &avx2::table();
#endif
  return instruction_set == "generic" ? &generic::table() : nullptr;
}

const KernelTable& cpu_kernels() {
  static const KernelTable& table = choose_cpu_kernels();
  return table;
}

std::vector<std::string> missing_kernels(const KernelTable& table) {
#define TYCHO_COUNT(name) +1
  static_assert(sizeof(KernelTable) ==
                    (1 TYCHO_KERNELS(TYCHO_COUNT) TYCHO_CPU_ONLY_KERNELS(TYCHO_COUNT)) * sizeof(void*),
                "list the new entry in kernel_table.h");
#undef TYCHO_COUNT
  std::vector<std::string> missing;
#define TYCHO_NAME_IF_MISSING(name) \
  if (!table.name) missing.push_back(#name);
  TYCHO_KERNELS(TYCHO_NAME_IF_MISSING)
  if (!std::string_view(table.name).starts_with("cuda")) {
    TYCHO_CPU_ONLY_KERNELS(TYCHO_NAME_IF_MISSING)
  }
#undef TYCHO_NAME_IF_MISSING
  return missing;
}

void set_cuda_kernels(const KernelTable* table) {
  const std::vector<std::string> missing = missing_kernels(*table);
  TYCHO_CHECK(
      missing.empty(),
      "[kernels] the CUDA plug-in lacks {} and {} other kernels: rebuild libtycho_cuda.so with this tycho",
      missing.front(), missing.size() - 1);
  cuda_table = table;
}

const KernelTable& cuda_kernels() {
  TYCHO_CHECK(
      cuda_table,
      "[kernels] no CUDA plug-in: a tensor is on a GPU, but libtycho_cuda.so is not loaded. Build with "
      "-DTYCHO_CUDA=ON and run with device = \"cuda\"");
  return *cuda_table;
}

}  // namespace tycho
