// What every op does between its checks and its kernel: find the table, the stream and the raw pointers.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/kernels/kernel_table.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// The table of the tensor's device.
const KernelTable& kernels(const Tensor& on);
/// The device's current stream; null on the CPU.
Stream stream_of(const Tensor& on);
/// fp32 or bf16; anything else is an Error that names the op.
Dtype dtype_of(std::string_view op, const Tensor& tensor);

/// An fp32 tensor's data; null for an undefined one.
float* data_or_null(Tensor& tensor);

/// Throws Error "[op] name: wanted bf16 [4096, 256] contiguous on cpu, got ..." unless the tensor is exactly
/// that.
void check_tensor(std::string_view op, std::string_view name, const Tensor& tensor, at::IntArrayRef shape,
                  at::ScalarType dtype, const at::Device& device);

/// As check_tensor, for a matrix whose rows need not touch: the elements of each row are neighbours. Returns
/// the elements between rows.
int64_t row_step(std::string_view op, std::string_view name, const Tensor& tensor, at::IntArrayRef shape,
                 at::ScalarType dtype, const at::Device& device);

/// [N, D] with N and D read off the tensor; anything else is an Error.
RowsShape rows_of(std::string_view op, std::string_view name, const Tensor& tensor);

/// All instruction sets that tables exist for, the best one last.
inline constexpr std::array<const char*, 3> kInstructionSets = {"generic", "avx2", "avx512"};
/// One instruction set's table; null when this build or this CPU lacks it.
const KernelTable* cpu_kernels_for(std::string_view instruction_set);
/// Names of the entries that a table lacks.
std::vector<std::string> missing_kernels(const KernelTable& table);

}  // namespace tycho
