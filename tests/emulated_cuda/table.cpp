// The door of libtycho_emulated_cuda.so: as libtycho_cuda.so's, without NCCL, and what tests ask of it.
#include "tests/emulated_cuda/table.h"

#include <string>
#include <type_traits>

#include "tests/emulated_cuda/declared.h"
#include "tests/emulated_cuda/emulator.h"
#include "tests/emulated_cuda/memory.h"
#include "trainer/base/error.h"
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/twins/kernel_work.h"

namespace tycho {
namespace {

constexpr KernelTable plain_table() {
  using namespace cuda;
  return {.name = "cuda emulated", TYCHO_KERNELS(TYCHO_TABLE_ENTRY)};
}
constexpr KernelTable kPlain = plain_table();

template <auto Entry, auto Work, class Function>
struct Watched;
template <auto Entry, auto Work, class Result, class... Args>
struct Watched<Entry, Work, Result (*)(Args...)> {
  static inline const char* name = "";
  static Result call(Args... arguments) {
    if constexpr (!std::is_void_v<Result>) {
      return (kPlain.*Entry)(arguments...);
    } else {
      const emulated::DeclaredCall declared((WorkOf(kPlain).*Work)(arguments...));
      (kPlain.*Entry)(arguments...);
      if (emulated::faults.most_blocks > 0) return;
      const std::string untouched = declared.untouched();
      TYCHO_CHECK(untouched.empty(), "[{}] kernel_work.cpp declares {}, which no thread does", name,
                  untouched);
    }
  }
};

const KernelTable kTable = [] {
  KernelTable table = kPlain;
#define TYCHO_WATCH(entry)                                                                     \
  {                                                                                            \
    using Kernel = Watched<&KernelTable::entry, &WorkOf::entry, decltype(KernelTable::entry)>; \
    Kernel::name = #entry;                                                                     \
    table.entry = &Kernel::call;                                                               \
  }
  TYCHO_KERNELS(TYCHO_WATCH)
#undef TYCHO_WATCH
  return table;
}();

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
