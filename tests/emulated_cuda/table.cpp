// The door of libtycho_emulated_cuda.so: as libtycho_cuda.so's, without NCCL, and what tests ask of it.
#include "tests/emulated_cuda/table.h"

#include "tests/emulated_cuda/emulator.h"
#include "tests/emulated_cuda/memory.h"
#include "trainer/kernels/cuda/kernels.h"

namespace tycho {
namespace {

constexpr KernelTable table() {
  using namespace cuda;
  return {.name = "cuda emulated", TYCHO_KERNELS(TYCHO_TABLE_ENTRY)};
}
constexpr KernelTable kTable = table();

constexpr EmulatedCuda kEmulated = {
    .table = &kTable,
    .remember = emulated::remember,
    .forget = emulated::forget,
    .set_order = emulated::set_order,
    .fail_sort = [](int call) { emulated::faults.sort_to_fail = call; },
    .limit_shared = [](int num_bytes) { emulated::faults.shared_limit = num_bytes; },
    .run_last_blocks = [](int64_t num_blocks) { emulated::faults.most_blocks = num_blocks; },
};

}  // namespace
}  // namespace tycho

extern "C" __attribute__((visibility("default"))) const tycho::EmulatedCuda* tycho_emulated_cuda() {
  return &tycho::kEmulated;
}
