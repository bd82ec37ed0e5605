// The stand-in's libtycho_cuda.so: the CPU's kernels as a GPU's, which look at the device, the stream and the
// pointers that they are given; NCCL's half, products and programs of recipes are the real ones.
#include <ATen/Context.h>
#include <cuda_runtime_api.h>

#include <type_traits>

#include "tests/standin_gpu/plugin/boxed.h"
#include "tests/standin_gpu/plugin/uses.h"
#include "tests/standin_gpu/runtime/record.h"
#include "tests/standin_gpu/runtime/state.h"
#include "trainer/base/error.h"
#include "trainer/cuda_plugin/entry/driver_plugin.h"
#include "trainer/cuda_plugin/entry/nccl_plugin.h"
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/library_product.h"
#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/kernels/twins/kernel_work.h"

namespace {

using tycho::KernelTable;

void check(const char* name, int error) {
  TYCHO_CHECK(error == 0, "[{}] the GPU rejected the kernel: {}. Was libtycho_cuda.so built for this GPU?",
              name, cudaGetErrorString(static_cast<cudaError_t>(error)));
}

void check_pointer(const char* name, const void* pointer) {
  if (pointer != nullptr) check(name, standin_check_pointer(name, pointer));
}

template <class Arg>
void check_argument(const char* name, const Arg& argument) {
  if constexpr (std::is_pointer_v<Arg> && !std::is_same_v<Arg, const tycho::ProgramMemory*>)
    check_pointer(name, argument);
  if constexpr (std::is_same_v<Arg, tycho::OptimizedWeights>) {
    check_pointer(name, argument.params);
    check_pointer(name, argument.master);
  }
  if constexpr (std::is_same_v<Arg, tycho::HeadRows>) check_pointer(name, argument.data);
  if constexpr (std::is_same_v<Arg, tycho::Rotations>) {
    check_pointer(name, argument.queries);
    check_pointer(name, argument.keys);
  }
  if constexpr (std::is_same_v<Arg, tycho::AttentionGradients>) {
    check_pointer(name, argument.dq);
    check_pointer(name, argument.dkv);
  }
  if constexpr (std::is_same_v<Arg, tycho::PositionRows>) check_pointer(name, argument.table);
  if constexpr (std::is_same_v<Arg, tycho::RowPositions>) check_pointer(name, argument.position_N);
}

/// Name of a launch in a record: with the shape of its rows.
template <class... Args>
std::string with_shape(const char* name, const Args&... arguments) {
  std::string shape;
  const auto add = [&](const auto& argument) {
    using Arg = std::decay_t<decltype(argument)>;
    if constexpr (std::is_same_v<Arg, tycho::RowsShape>)
      shape = fmt::format(" {}x{}", argument.rows, argument.dim);
    if constexpr (std::is_same_v<Arg, tycho::NormShape>)
      shape = fmt::format(" {}x{}", argument.rows, argument.groups * argument.dim);
  };
  (add(arguments), ...);
  return name + shape;
}

/// Returns the last argument.
template <class... Args>
cudaStream_t stream_of(const Args&... arguments) {
  void* stream = nullptr;
  ((void)(stream = [](const auto& argument) -> void* {
     if constexpr (std::is_same_v<std::decay_t<decltype(argument)>, void*>) return argument;
     return nullptr;
   }(arguments)),
   ...);
  return static_cast<cudaStream_t>(stream);
}

template <class... Args>
void check_launch(const char* name, const Args&... arguments) {
  check(name, standin_check_launch(name, stream_of(arguments...)));
  size_t left = sizeof...(Args);
  ((--left > 0 ? check_argument(name, arguments) : void()), ...);
}

template <auto Entry, auto Work, class Function>
struct Checked;
template <auto Entry, auto Work, class Result, class... Args>
struct Checked<Entry, Work, Result (*)(Args...)> {
  static constexpr bool is_program = std::is_same_v<Result (*)(Args...), decltype(KernelTable::run_program)>;
  static inline const char* name = "";
  static Result call(Args... arguments) {
    if constexpr (std::is_void_v<Result>) {
      check_launch(name, arguments...);
      const tycho::KernelWork work = (tycho::WorkOf(tycho::cpu_kernels()).*Work)(arguments...);
      if constexpr (is_program)
        for (const tycho::Access& one : work.accesses) check_pointer(name, one.data);
      if (standin_records())
        return standin_record(with_shape(name, arguments...).c_str(), work.bytes_read(), work.bytes_written(),
                              work.flops);
      standin::enqueued(name, stream_of(arguments...), standin::uses_of(work));
    }
    // The GPU's own: its text is compiled for this machine.
    if constexpr (is_program)
      tycho::cuda::run_program(arguments...);
    else
      return (tycho::cpu_kernels().*Entry)(arguments...);
  }
};

#define STANDIN_FILL(entry)                                                                           \
  {                                                                                                   \
    using Kernel = Checked<&KernelTable::entry, &tycho::WorkOf::entry, decltype(KernelTable::entry)>; \
    Kernel::name = #entry;                                                                            \
    table.entry = &Kernel::call;                                                                      \
  }

const KernelTable& checked_table() {
  static const KernelTable all = [] {
    KernelTable table{.name = "cuda"};
    TYCHO_KERNELS(STANDIN_FILL)
    return table;
  }();
  return all;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void tycho_cuda_init(
    void (*register_kernels)(const tycho::KernelTable*), void (*register_nccl)(const tycho::NcclTable*),
    void (*register_driver)(const tycho::DriverTable*),
    void (*register_products)(const tycho::LibraryProducts*)) {
  standin::put_operators_on_the_cpu();
  register_kernels(&checked_table());
  register_nccl(tycho::nccl_table());
  register_driver(tycho::driver_table());
  register_products(&tycho::cuda::cublas_lt_products());
}
