// The device that a run computes on.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/base/precision.h"
#include "trainer/config/train_config.h"
#include "trainer/kernels/tensor.h"
#include "trainer/rendezvous/rank_place.h"

namespace tycho {

/// What a recipe's `device` means here. `cuda` opens libtycho_cuda.so, which lies beside libtycho_engine.so;
/// without it or without a GPU that is an Error (kTopology). `auto` takes the GPU when both are there. Each
/// rank of a machine takes the GPU of its `local_rank`, or the only one that it sees. A GPU is initialised
/// then, and is the current device of the calling thread.
at::Device choose_device(DeviceKind kind, int local_rank = 0);

/// Sets the number of CPU threads: `wanted`, or with 0 one per core that this process may use. Returns it.
int set_threads(int64_t wanted, const RankPlace& place = {});

/// For people and for the table of peaks: "2 threads, AMD EPYC", "NVIDIA H200".
std::string device_name(const at::Device& device);

/// Peak bytes so far: resident memory of this process, or what LibTorch's allocator took on the GPU.
int64_t peak_memory_bytes(const at::Device& device);
/// Bytes in use now, likewise.
int64_t memory_bytes(const at::Device& device);
/// Free bytes of a GPU, with what the allocator kept for later, which is given back; 0 when unknown.
int64_t free_memory_bytes(const at::Device& gpu);
/// All memory of the device; 0 when unknown.
int64_t device_memory_bytes(const at::Device& device);

/// Warnings about what will be slow here: bf16 on a CPU without bf16 units, attention that a GPU's flash
/// attention cannot compute.
std::vector<std::string> speed_notes(const at::Device& device, const TrainConfig& config);

/// Versions of what computes here: LibTorch, the instructions that it uses of this CPU, kernels and the
/// instruction sets that there are kernels for, who multiplies matrices of each precision.
Json engine_versions();

/// What the bits of a run depend on besides its recipe, names to texts: kernels, who multiplies, LibTorch.
/// Chosen once per process. Where ATen multiplies on the CPU, also processor and number of threads: they
/// choose its order of summation, and ours does not depend on them.
Json compute_route(const at::Device& device, Precision precision);
/// engine_versions(), and the route of a run as "route".
Json run_versions(const at::Device& device, Precision precision);

}  // namespace tycho
