// Peak performance of devices: the denominator of MFU. Torch-free.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "trainer/base/gpu_shape.h"
#include "trainer/base/precision.h"

namespace tycho {

/// Returns the dense FLOP/s (no sparsity) of one device by its driver's name: "NVIDIA H100 80GB HBM3". bf16
/// is the rate of the matrix units, fp32 that of plain fp32 arithmetic without TF32. Returns nullopt for a
/// device or variant that is not in the table, for a slice of one (MIG) and for every CPU, so that an MFU is
/// never a guess.
std::optional<double> device_peak_flops(std::string_view name, Precision precision);

/// Returns the bytes of a GPU that a program can use, by the same names; nullopt where boards of one name
/// differ.
std::optional<int64_t> gpu_memory_bytes(std::string_view name);

/// Returns the multiprocessors and the compute capability of a GPU, by the same names; {} for an unknown one.
GpuShape gpu_shape(std::string_view name);

}  // namespace tycho
