// The options of `tycho bench comm`, and its results. Torch-free.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tycho {

struct CommBenchRequest {
  int64_t min_bytes = 8, max_bytes = int64_t{64} << 20;
  int64_t factor = 2;  // between one size and the next
  int iterations = 20, warmup = 5;
  std::vector<std::string> collectives;  // names in comm_verbs(); empty for all
  std::string mesh;  // "dp_replicate=2,dp_shard=4": along each axis; empty: all ranks together
  std::string device = "auto";
};

/// One form of an operation, in place or out of place.
struct CommForm {
  double seconds = 0;     // of one call, on the slowest rank
  int64_t num_wrong = 0;  // wrong elements on all ranks
};

/// One operation at one size along one axis; all groups of the axis work at once.
struct CommTiming {
  std::string op, axis;
  int group_size = 1;
  int64_t num_bytes = 0;  // nccl-tests' size: the larger one of a rank's input and output
  int64_t count = 0;      // fp32 elements of a rank's part: the smaller one of input and output
  /// Bytes that cross a link, per byte of num_bytes, when all links are used equally: nccl-tests' bus factor.
  double bus_factor = 1;
  std::optional<CommForm> out_of_place, in_place;  // nullopt when the operation lacks the form
};

/// Called with each line once it is measured. Called on rank 0 only.
using ShowCommTiming = std::function<void(const CommTiming&)>;

}  // namespace tycho
