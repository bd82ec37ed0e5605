// Steps between the checks of an op and its kernel: find the table, the stream and the raw pointers.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// Returns the table of the tensor's device.
const KernelTable& kernels(const Tensor& on);
/// Returns the stream to launch on, null on the CPU: the current one of the tensor's device, which becomes
/// the thread's current device. CUDA launches on that device, whatever the stream.
Stream stream_of(const Tensor& on);
/// Returns fp32 or bf16. Throws Error that names the op for anything else.
Dtype dtype_of(std::string_view op, const Tensor& tensor);

/// Returns an fp32 tensor's data; null for an undefined one.
float* data_or_null(Tensor& tensor);

/// Throws Error "[op] name: expected bf16 [4096, 256] contiguous on cpu, got ..." unless the tensor is
/// exactly that.
void check_tensor(std::string_view op, std::string_view name, const Tensor& tensor, at::IntArrayRef shape,
                  at::ScalarType dtype, const at::Device& device);

/// Checks a matrix whose elements are contiguous within each row, while rows need not be. Returns the number
/// of elements between rows. Throws as check_tensor.
int64_t row_step(std::string_view op, std::string_view name, const Tensor& tensor, at::IntArrayRef shape,
                 at::ScalarType dtype, const at::Device& device);

/// Returns the tensor's [N, D]. Throws Error for a tensor of other dims.
RowsShape rows_of(std::string_view op, std::string_view name, const Tensor& tensor);

/// All instruction sets that tables exist for, the best one last.
inline constexpr std::array<const char*, 5> kInstructionSets = {"generic", "avx2", "avx512", "avx512_bf16",
                                                                "amx_bf16"};
/// Returns the table of one instruction set; null when this build or this CPU lacks it.
const KernelTable* cpu_kernels_for(std::string_view instruction_set);
/// Returns the names of the entries that a table lacks.
std::vector<std::string> missing_kernels(const KernelTable& table);

}  // namespace tycho
