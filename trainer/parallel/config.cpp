// The rules between the sizes of a mesh.
#include "trainer/parallel/config.h"

#include "trainer/base/config_problems.h"

namespace tycho {
namespace {

void check_supported(const char* key, int64_t size, const char* what, ConfigProblems& problems) {
  if (size != 1)
    problems.add(std::string("parallel.") + key, "{} not supported yet; set parallel.{} = 1", what, key);
}

}  // namespace

void check(const ParallelConfig& parallel, std::optional<int64_t> num_ranks, ConfigProblems& problems) {
  const size_t before = problems.size();
  check_supported("pp", parallel.pp, "pipeline parallelism is", problems);
  check_supported("dp_shard", parallel.dp_shard, "sharded parameters are", problems);
  check_supported("cp", parallel.cp, "context parallelism is", problems);
  check_supported("tp", parallel.tp, "tensor parallelism is", problems);
  problems.at_most("parallel.dp_replicate", static_cast<double>(parallel.dp_replicate), 0x1p20);
  if (parallel.dp_replicate == 0)
    problems.add("parallel.dp_replicate",
                 "0 replicas cannot train; write how many there are, or -1 for as many "
                 "as there are ranks");
  if (problems.size() != before || !num_ranks) return;
  const std::optional<int64_t> wanted = wanted_ranks(parallel);
  if (wanted && *wanted != *num_ranks)
    problems.add(
        "parallel.dp_replicate",
        "the mesh has {} rank{}, and the run has {}; start {} rank{}, or write -1 for as many as there "
        "are",
        *wanted, *wanted == 1 ? "" : "s", *num_ranks, *wanted, *wanted == 1 ? "" : "s");
}

std::optional<int64_t> wanted_ranks(const ParallelConfig& parallel) {
  if (parallel.dp_replicate == ParallelConfig::kWhatIsLeft) return std::nullopt;
  return parallel.pp * parallel.dp_replicate * parallel.dp_shard * parallel.cp * parallel.tp;
}

MeshShape mesh_shape(const ParallelConfig& parallel, int64_t num_ranks) {
  const int64_t others = parallel.pp * parallel.dp_shard * parallel.cp * parallel.tp;
  const int64_t replicas =
      parallel.dp_replicate == ParallelConfig::kWhatIsLeft ? num_ranks / others : parallel.dp_replicate;
  MeshShape shape;
  const auto set = [&](Axis axis, int64_t size) {
    shape.sizes[static_cast<size_t>(axis)] = static_cast<int>(size);
  };
  set(Axis::kPp, parallel.pp);
  set(Axis::kDpReplicate, replicas);
  set(Axis::kDpShard, parallel.dp_shard);
  set(Axis::kCp, parallel.cp);
  set(Axis::kTp, parallel.tp);
  return shape;
}

}  // namespace tycho
