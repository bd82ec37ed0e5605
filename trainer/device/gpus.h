// The GPUs of this machine, as CUDA reports them.
#pragma once
#include "trainer/base/gpu_shape.h"
#include "trainer/base/json.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// Returns {"gpus": 8, "nvrtc": "13.0", "nvrtc_path": path, "nvrtc_problem": "", "flash_attn_3": path or "",
/// "flash_attn_3_problem": ""}; with CUDA's reason {"gpus":
/// 0, "has_driver": true, "gpu_problem": text}; {} for a build without CUDA. Opens libtycho_cuda.so.
Json usable_gpus();

/// Returns the multiprocessors and compute capability of a GPU; {} for a CPU.
GpuShape gpu_shape_of(const at::Device& device);

}  // namespace tycho
