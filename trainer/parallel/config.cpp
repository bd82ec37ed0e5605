// The rules between the sizes of a mesh.
#include "trainer/parallel/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "trainer/base/config_problems.h"

namespace tycho {
namespace {

constexpr int64_t kLeft = ParallelConfig::kWhatIsLeft;
constexpr size_t kShownMeshes = 3;

void check_supported(const char* key, int64_t size, const char* what, ConfigProblems& problems) {
  if (size != 1)
    problems.add(std::string("parallel.") + key, "{} not supported yet; set parallel.{} = 1", what, key);
}

void check_data_size(const char* key, int64_t size, const char* what, ConfigProblems& problems) {
  const std::string path = std::string("parallel.") + key;
  problems.at_most(path.c_str(), static_cast<double>(size), 0x1p20);
  if (size == 0)
    problems.add(path, "{}; write how many there are, or -1 for as many as there are ranks", what);
}

std::string ranks_text(int64_t n) { return fmt::format("{} rank{}", n, n == 1 ? "" : "s"); }

/// How the two sizes that may be -1 come out when `left` ranks are theirs. A recipe that writes dp_shard = -1
/// alone wants one copy of the model.
struct DataSizes {
  int64_t replicate = 1, shard = 1;
};
DataSizes data_sizes(const ParallelConfig& parallel, int64_t left) {
  if (parallel.dp_shard == kLeft)
    return parallel.dp_replicate == kLeft
               ? DataSizes{1, left}
               : DataSizes{parallel.dp_replicate, std::max<int64_t>(1, left / parallel.dp_replicate)};
  return {
      parallel.dp_replicate == kLeft ? std::max<int64_t>(1, left / parallel.dp_shard) : parallel.dp_replicate,
      parallel.dp_shard};
}

std::string divisors_text(int64_t n) {
  std::vector<int64_t> all;
  for (int64_t size = 1; size <= n; ++size)
    if (n % size == 0) all.push_back(size);
  return fmt::format("{}", fmt::join(all, ", "));
}

/// Meshes whose data axes have so many ranks, the one most like `wanted` first.
std::string nearest_meshes(const DataSizes& wanted, int64_t left, const std::string& others) {
  std::vector<DataSizes> all;
  for (int64_t shard = 1; shard <= left; ++shard)
    if (left % shard == 0) all.push_back({left / shard, shard});
  const auto distance = [&](const DataSizes& mesh) {
    const auto ratio = [](int64_t a, int64_t b) {
      return std::abs(std::log(static_cast<double>(a) / static_cast<double>(b)));
    };
    return ratio(mesh.shard, wanted.shard) + ratio(mesh.replicate, wanted.replicate);
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const DataSizes& a, const DataSizes& b) { return distance(a) < distance(b) - 1e-9; });
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(all.size(), kShownMeshes); ++i)
    texts.push_back(
        fmt::format("dp_replicate = {} with dp_shard = {}{}", all[i].replicate, all[i].shard, others));
  return fmt::format("{}", fmt::join(texts, "; "));
}

int64_t other_axes(const ParallelConfig& parallel) { return parallel.pp * parallel.cp * parallel.tp; }

/// Those axes that have more than one rank, each as `pattern` with its name and size.
std::string others_text(const ParallelConfig& parallel, const char* pattern) {
  std::string text;
  const std::pair<Axis, int64_t> others[] = {{Axis::kCp, parallel.cp}, {Axis::kTp, parallel.tp}};
  for (const auto& [axis, size] : others)
    if (size > 1) text += fmt::format(fmt::runtime(pattern), axis_name(axis), size);
  return text;
}

}  // namespace

void check(const ParallelConfig& parallel, std::optional<int64_t> num_ranks, ConfigProblems& problems) {
  const size_t before = problems.size();
  check_supported("pp", parallel.pp, "pipeline parallelism is", problems);
  problems.at_most("parallel.cp", static_cast<double>(parallel.cp), 0x1p14);
  problems.at_most("parallel.tp", static_cast<double>(parallel.tp), 0x1p14);
  check_data_size("dp_replicate", parallel.dp_replicate, "0 replicas cannot train", problems);
  check_data_size("dp_shard", parallel.dp_shard, "0 ranks cannot share a model", problems);
  if (problems.size() != before || !num_ranks) return;
  const int64_t others = other_axes(parallel);
  if (*num_ranks % others != 0)
    return problems.add(parallel.tp > 1 ? "parallel.tp" : "parallel.cp",
                        "the number of ranks must be a multiple of {}, and the run has {}. Start {}, or set "
                        "parallel.{} to one of {}",
                        others, *num_ranks, ranks_text(std::max<int64_t>(1, *num_ranks / others) * others),
                        parallel.tp > 1 ? "tp" : "cp", divisors_text(*num_ranks));
  const DataSizes sizes = data_sizes(parallel, *num_ranks / others);
  const int64_t product = sizes.replicate * sizes.shard * others;
  if (product == *num_ranks) return;
  if (parallel.dp_shard == 1)
    return problems.add("parallel.dp_replicate",
                        "the mesh has {}, and the run has {}; start {}, or write -1 for as many as there are",
                        ranks_text(product), *num_ranks, ranks_text(product));
  const int64_t fewest = fewest_ranks(parallel);
  const std::string rule =
      wanted_ranks(parallel)
          ? fmt::format("dp_replicate x dp_shard{} = {} x {}{} is {}", others_text(parallel, " x {0}"),
                        sizes.replicate, sizes.shard, others_text(parallel, " x {1}"), ranks_text(product))
          : fmt::format("the number of ranks must be a multiple of {}", fewest);
  problems.add("parallel.dp_shard", "{}, and the run has {}. Start {}, or set one of the nearest meshes: {}",
               rule, *num_ranks, ranks_text(fewest * std::max<int64_t>(1, *num_ranks / fewest)),
               nearest_meshes(sizes, *num_ranks / others, others_text(parallel, " and {0} = {1}")));
}

int64_t data_ranks(const ParallelConfig& parallel, int64_t num_ranks) {
  return mesh_shape(parallel, num_ranks).size(kDataAxes);
}

std::optional<int64_t> wanted_ranks(const ParallelConfig& parallel) {
  if (parallel.dp_replicate == kLeft || parallel.dp_shard == kLeft) return std::nullopt;
  return fewest_ranks(parallel);
}

int64_t fewest_ranks(const ParallelConfig& parallel) {
  return other_axes(parallel) * std::max<int64_t>(1, parallel.dp_replicate) *
         std::max<int64_t>(1, parallel.dp_shard);
}

MeshShape mesh_shape(const ParallelConfig& parallel, int64_t num_ranks) {
  const DataSizes sizes = data_sizes(parallel, num_ranks / other_axes(parallel));
  MeshShape shape;
  const auto set = [&](Axis axis, int64_t size) {
    shape.sizes[static_cast<size_t>(axis)] = static_cast<int>(size);
  };
  set(Axis::kPp, parallel.pp);
  set(Axis::kDpReplicate, sizes.replicate);
  set(Axis::kDpShard, sizes.shard);
  set(Axis::kCp, parallel.cp);
  set(Axis::kTp, parallel.tp);
  return shape;
}

}  // namespace tycho
