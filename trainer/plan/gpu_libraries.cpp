// Rules of thumb from public reports of PyTorch runs.
#include "trainer/plan/gpu_libraries.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/recipe/mesh_groups.h"

namespace tycho {
namespace {

constexpr int64_t kMiB = 1 << 20;
/// CUDA's context, and the machine code of the kernels of LibTorch, cuBLAS and Tycho that a run loads.
constexpr int64_t kContextBytes = 500 * kMiB, kCodeBytes = 100 * kMiB;
/// LibTorch's workspace of cuBLAS on compute capability 9 and 10; others take 8 MiB.
constexpr int64_t kCublasBytes = 32 * kMiB;
/// Buffers for the connections of a group to its neighbours in rings and trees, and of a pair.
constexpr int64_t kGroupBytes = 320 * kMiB, kPairBytes = 64 * kMiB;

int64_t bytes_of_group(int num_ranks) { return num_ranks == 2 ? kPairBytes : kGroupBytes; }

}  // namespace

std::vector<ByteItem> gpu_library_memory(const MeshShape& mesh, bool is_ring) {
  const auto estimate = [](const char* name, int64_t num_bytes, std::string note) {
    return ByteItem{name, num_bytes, "estimated: " + std::move(note), /*is_estimate=*/true};
  };
  std::vector<ByteItem> items = {estimate("CUDA", kContextBytes + kCodeBytes, "context and machine code"),
                                 estimate("cuBLAS", kCublasBytes, "workspace of products")};
  if (mesh.num_ranks() == 1) return items;
  std::vector<AxisSet> groups = {};
  int64_t num_bytes = bytes_of_group(mesh.num_ranks()), count = 1;
  const auto add = [&](int num_ranks, int64_t times) {
    num_bytes += times * bytes_of_group(num_ranks), count += times;
  };
  for (const AxisSet axes : kMeshGroups) {
    const AxisSet used = used_axes(mesh, axes);
    const int size = mesh.size(used);
    if (size == 1 || size == mesh.num_ranks() ||
        std::find(groups.begin(), groups.end(), used) != groups.end())
      continue;
    groups.push_back(used);
    add(size, 1);
  }
  if (mesh.size(Axis::kPp) > 2) add(2, 2);  // with the stages before and behind it
  if (is_ring && mesh.size(Axis::kCp) > 2) add(2, 2);
  items.push_back(
      estimate("NCCL", num_bytes, fmt::format("buffers of {} group{}", count, count == 1 ? "" : "s")));
  return items;
}

}  // namespace tycho
