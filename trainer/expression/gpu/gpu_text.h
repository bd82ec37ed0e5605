// Programs as CUDA C, for NVRTC.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/expression/tile_code.h"

namespace tycho {

/// Form of a program's array in memory. Mixed: a bf16 copy of fp32 weights, whose memory is GpuRun::master.
struct GpuArray {
  enum class Form : uint8_t { kFp32, kBf16, kMixed, kStochasticBf16 } form = Form::kFp32;
  bool one = false;  // a number serves a whole row
  bool read = false, written = false;
};

/// Name of the kernel that gpu_text writes: tycho_program(arguments), by value, any grid of one dimension.
inline constexpr const char* kGpuKernel = "tycho_program";

/// Returns the source of one kernel that runs a program over all elements. Its argument is a GpuRun, a
/// GpuArrayMemory for each array, then the constants. The text depends on the operations and the forms alone,
/// so that one serves every step. Stochastic and mixed arrays need rows = 1.
std::string gpu_text(const TileProgram& program, const std::vector<GpuArray>& arrays);

/// Text that is part of this binary; cmake/EmbedText.cmake writes the source.
struct GpuSource {
  const char* name;
  const char* file;
  std::string_view text;
};
const std::vector<GpuSource>& gpu_sources();

}  // namespace tycho
