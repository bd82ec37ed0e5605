// Chooses the table of a device.
#include "trainer/kernels/twins/kernel_table.h"

#ifdef TYCHO_X86_KERNELS
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#include <fmt/ranges.h>

#include "trainer/base/environment.h"
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
namespace avx512_bf16 {
const KernelTable& table();
}
namespace amx_bf16 {
const KernelTable& table();
}
#endif

namespace {

const KernelTable* cuda_table = nullptr;

#ifdef TYCHO_X86_KERNELS
bool has_avx512_bf16() {
  constexpr unsigned kAvx512Bf16 = 1u << 5;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("x86-64-v4") && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & kAvx512Bf16);
}

/// Returns true if the CPU has AMX for bf16, and Linux lets this process use it: its registers are large, so
/// a process must request them.
bool ask_for_amx_bf16() {
  constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24, kNeeded = kAmxBf16 | kAmxTile;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!has_avx512_bf16() || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kNeeded) != kNeeded)
    return false;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool has_amx_bf16() {
  static const bool has = ask_for_amx_bf16();
  return has;
}
#endif

const KernelTable& choose_cpu_kernels() {
  if (const std::string wanted = environment_variable("TYCHO_CPU"); !wanted.empty()) {
    const KernelTable* table = cpu_kernels_for(wanted);
    if (!table)
      fail(ExitCode::kUsage,
           "[kernels] TYCHO_CPU expected one of {} that this CPU can run, got '{}'. Unset it to let Tycho "
           "choose",
           fmt::join(kInstructionSets, ", "), wanted);
    return *table;
  }
  const KernelTable* best = nullptr;
  for (const char* name : kInstructionSets)
    if (const KernelTable* table = cpu_kernels_for(name)) best = table;
  return *best;
}

}  // namespace

const KernelTable* cpu_kernels_for(std::string_view instruction_set) {
#ifdef TYCHO_X86_KERNELS
  if (instruction_set == "amx_bf16" && has_amx_bf16()) return &amx_bf16::table();
  if (instruction_set == "avx512_bf16" && has_avx512_bf16()) return &avx512_bf16::table();
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
