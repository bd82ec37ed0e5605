// Checks the sizes of a mesh and their combinations.
#include "trainer/recipe/parallel.h"

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

void check_data_size(const char* key, int64_t size, const char* what, ConfigProblems& problems) {
  const std::string path = std::string("parallel.") + key;
  problems.at_most(path.c_str(), static_cast<double>(size), 0x1p20);
  if (size == 0)
    problems.add(path, "{}; write how many there are, or -1 for as many as there are ranks", what);
}

/// Checks the schedule. Sizes of mesh = "auto" are checked after the planner has chosen them.
void check_schedule(const ParallelConfig& parallel, ConfigProblems& problems) {
  if (parallel.mesh == MeshSizes::kAuto) return;
  const bool has_stages = parallel.pp > 1;
  problems.idle("parallel.pp_chunks", parallel.pp_chunks != 1, has_stages, "with parallel.pp = 1");
  problems.idle("parallel.pp_layers", !parallel.pp_layers.empty(), has_stages, "with parallel.pp = 1");
  if (!has_stages) return;
  if (const std::string problem = shape_problem(pipeline_shape(parallel, 1)); !problem.empty())
    problems.add("parallel.pp_schedule", "{}", problem);
}

std::string ranks_text(int64_t n) { return fmt::format("{} rank{}", n, n == 1 ? "" : "s"); }

/// Values of the two sizes that may be -1, if `left` ranks are theirs. A recipe that only sets dp_shard = -1
/// gets one copy of the model.
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

/// Lists meshes whose data axes have `left` ranks, the one most similar to `wanted` first.
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

/// Formats the name and size of each axis with more than one rank, except the data axes.
std::string for_other_axes(const ParallelConfig& parallel, const std::string& format) {
  std::string text;
  for (const auto& [axis, size] :
       {std::pair(Axis::kPp, parallel.pp), {Axis::kCp, parallel.cp}, {Axis::kTp, parallel.tp}})
    if (size > 1) text += fmt::format(fmt::runtime(format), axis_name(axis), size);
  return text;
}

void check_multiple(const ParallelConfig& parallel, int64_t num_ranks, ConfigProblems& problems) {
  const int64_t others = other_axes(parallel);
  const std::string start = ranks_text(std::max<int64_t>(1, num_ranks / others) * others);
  const char* axis = parallel.tp > 1 ? "tp" : "cp";
  if (parallel.pp == 1)
    return problems.add(fmt::format("parallel.{}", axis),
                        "the number of ranks must be a multiple of {}, and the run has {}. Start {}, or set "
                        "parallel.{} to one of {}",
                        others, num_ranks, start, axis, divisors_text(num_ranks));
  problems.add("parallel.pp",
               "the number of ranks must be a multiple of{} = {}, and the run has {}. Start {}, or set "
               "parallel.pp = 1",
               for_other_axes(parallel, " x {}").substr(2), others, num_ranks, start);
}

}  // namespace

void check(const ParallelConfig& parallel, std::optional<int64_t> num_ranks, ConfigProblems& problems) {
  const size_t before = problems.size();
  problems.at_most("parallel.pp", static_cast<double>(parallel.pp), 0x1p14);
  problems.at_most("parallel.pp_chunks", static_cast<double>(parallel.pp_chunks), 0x1p14);
  problems.at_most("parallel.cp", static_cast<double>(parallel.cp), 0x1p14);
  problems.at_most("parallel.tp", static_cast<double>(parallel.tp), 0x1p14);
  if (problems.size() == before) check_schedule(parallel, problems);
  check_data_size("dp_replicate", parallel.dp_replicate, "0 replicas cannot train", problems);
  check_data_size("dp_shard", parallel.dp_shard, "0 ranks cannot share a model", problems);
  if (problems.size() != before || !num_ranks) return;
  const int64_t others = other_axes(parallel);
  if (*num_ranks % others != 0) return check_multiple(parallel, *num_ranks, problems);
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
          ? fmt::format("dp_replicate x dp_shard{} = {} x {}{} is {}", for_other_axes(parallel, " x {0}"),
                        sizes.replicate, sizes.shard, for_other_axes(parallel, " x {1}"), ranks_text(product))
          : fmt::format("the number of ranks must be a multiple of {}", fewest);
  problems.add("parallel.dp_shard", "{}, and the run has {}. Start {}, or set one of the nearest meshes: {}",
               rule, *num_ranks, ranks_text(fewest * std::max<int64_t>(1, *num_ranks / fewest)),
               nearest_meshes(sizes, *num_ranks / others, for_other_axes(parallel, " and {} = {}")));
}

PipelineShape pipeline_shape(const ParallelConfig& parallel, int64_t num_micro_batches) {
  return {.schedule = parallel.pp_schedule,
          .num_stages = static_cast<int>(parallel.pp),
          .num_micro_batches = static_cast<int>(num_micro_batches),
          .num_chunks = static_cast<int>(parallel.pp_chunks)};
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
