// The device that a run computes on.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/base/precision.h"
#include "trainer/kernels/tensor.h"
#include "trainer/recipe/train_config.h"
#include "trainer/rendezvous/rank_info.h"

namespace tycho {

/// Returns the device for a recipe's `device`. `cuda` opens libtycho_cuda.so beside libtycho_engine.so;
/// without it or without a GPU it throws Error (kTopology). `auto` uses the GPU when both exist. Each rank of
/// a machine uses the GPU of its `local_rank`, or the only visible one. A GPU is then initialised and is the
/// current device of the calling thread.
at::Device choose_device(DeviceKind kind, int local_rank = 0);

/// Sets the number of CPU threads to `wanted`, or for 0 to one per core that this process may use. Returns
/// it.
int set_threads(int64_t wanted, const RankInfo& place = {});

/// Returns the name for display and for the table of peaks: "2 threads, AMD EPYC", "NVIDIA H200".
std::string device_name(const at::Device& device);

/// Returns the peak bytes so far: resident memory of this process, or memory of LibTorch's allocator on the
/// GPU.
int64_t peak_memory_bytes(const at::Device& device);
/// Returns the bytes in use now, of the same memory.
int64_t memory_bytes(const at::Device& device);
/// Returns the free bytes of a GPU, including the allocator's cache, which is released first; 0 when unknown.
int64_t free_memory_bytes(const at::Device& gpu);
/// Returns the total memory of the device in bytes; 0 when unknown.
int64_t device_memory_bytes(const at::Device& device);

/// Returns warnings about slow parts on this device: bf16 on a CPU without bf16 units, attention that a GPU's
/// flash attention cannot compute.
std::vector<std::string> speed_notes(const at::Device& device, const TrainConfig& config);

/// Throws Error (kTopology) if FlashAttention-3 computes this run's attention and its library cannot be used.
void require_flash_3(const at::Device& device, const TrainConfig& config);

/// Returns versions: of LibTorch, its instruction set on this CPU, the kernels and the instruction sets that
/// they exist for, and the library that multiplies matrices in each precision.
Json engine_versions();

/// Returns what the bits of a run depend on besides its recipe, as strings by name: kernels, the library that
/// multiplies, LibTorch. Chosen once per process. When ATen multiplies on the CPU, it includes the processor
/// and number of threads, which decide ATen's order of summation; ours does not depend on them.
Json compute_route(const at::Device& device, Precision precision);
/// Returns engine_versions(), and the route of a run as "route".
Json run_versions(const at::Device& device, Precision precision);

}  // namespace tycho
