// Reads the rank and rendezvous of a process from the launcher's variables.
#include "trainer/rendezvous/rank_info.h"

#include <charconv>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/secrets.h"
#include "trainer/rendezvous/slurm_lists.h"

namespace tycho {
namespace {

constexpr int kMaxRanks = 1 << 20;
constexpr int kMaxPort = 65535;
constexpr size_t kShortestToken = 16;
/// Range below 32768, where Linux begins to assign ports by itself.
constexpr int kFirstSlurmPort = 20000, kNumSlurmPorts = 12000;
constexpr int64_t kStepsPerJob = 64;  // steps of one job that may run at the same time and meet at different
                                      // ports
constexpr const char* kAlone = "TYCHO_NUM_RANKS=1 makes it a single process";

class Variables {
 public:
  explicit Variables(const Environment& variable) : variable_(variable) {}

  std::optional<std::string> find(const std::string& name) const {
    std::optional<std::string> value = variable_(name);
    if (value && value->empty()) value.reset();
    return value;
  }
  bool has(const std::string& name) const { return find(name).has_value(); }

  /// `because`: variable that makes this one necessary.
  std::string text(const std::string& name, const std::string& because) const {
    if (const std::optional<std::string> value = find(name)) return *value;
    fail(ExitCode::kTopology, "[ranks] {} is set, so {} must be too; it is not. {}", because, name, kAlone);
  }
  int64_t number(const std::string& name, const std::string& because, int64_t low, int64_t high) const {
    const std::string given = text(name, because);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
    if (error == std::errc() && end == given.data() + given.size() && value >= low && value <= high)
      return value;
    fail(ExitCode::kTopology, "[ranks] {} expected a whole number from {} to {}, got \"{}\"; {}", name, low,
         high, given, kAlone);
  }
  int small(const std::string& name, const std::string& because, int low, int high) const {
    return static_cast<int>(number(name, because, low, high));
  }

 private:
  const Environment& variable_;
};

void check_local(const RankInfo& place, const char* local_count, const char* count) {
  if (place.num_local_ranks <= place.num_ranks) return;
  fail(ExitCode::kTopology, "[ranks] {} is {}, but {} is {}: a machine cannot have more ranks than the run",
       local_count, place.num_local_ranks, count, place.num_ranks);
}

/// Returns the token if it is long enough. Messages do not show it.
std::string checked_token(const std::string& token) {
  register_secret(token);
  if (token.size() >= kShortestToken) return token;
  fail(ExitCode::kTopology,
       "[ranks] TYCHO_TOKEN expected a secret of {} or more characters, got {}; `openssl rand -hex 16` makes "
       "one",
       kShortestToken, token.size());
}

RankInfo place_of_launch(const Variables& variables) {
  RankInfo place;
  const char* count = "TYCHO_NUM_RANKS";
  place.num_ranks = variables.small(count, "TYCHO_RANK", 1, kMaxRanks);
  if (place.num_ranks == 1) return place;
  place.rank = variables.small("TYCHO_RANK", count, 0, place.num_ranks - 1);
  const char* local_count = "TYCHO_NUM_LOCAL_RANKS";
  place.num_local_ranks = variables.small(local_count, count, 1, kMaxRanks);
  place.local_rank = variables.small("TYCHO_LOCAL_RANK", count, 0, place.num_local_ranks - 1);
  check_local(place, local_count, count);
  place.address = variables.text("TYCHO_ADDRESS", count);
  place.port = variables.small("TYCHO_PORT", count, 1, kMaxPort);
  place.token = checked_token(variables.text("TYCHO_TOKEN", count));
  if (place.rank == 0 && variables.has(kListenerVariable))
    place.listener = variables.small(kListenerVariable, count, 0, INT_MAX);
  place.source = "tycho launch";
  return place;
}

/// Checks RANK and WORLD_SIZE inside of a Slurm step, as wrapper scripts export them, against Slurm's values:
/// if they differ, another launcher stands between srun and this process.
void check_torchrun_agrees(const Variables& variables, const RankInfo& place) {
  const std::optional<std::string> rank = variables.find("RANK"), world = variables.find("WORLD_SIZE");
  if (!rank || !world) return;
  if (*rank == std::to_string(place.rank) && *world == std::to_string(place.num_ranks)) return;
  fail(ExitCode::kTopology,
       "[ranks] SLURM_PROCID={} and SLURM_STEP_NUM_TASKS={} contradict RANK={} and WORLD_SIZE={}: start one "
       "task per rank with srun and unset RANK and WORLD_SIZE, or unset SLURM_STEP_NUM_TASKS where another "
       "launcher starts the ranks",
       place.rank, place.num_ranks, *rank, *world);
}

/// Returns the number of processes of this step on this node. Checks it against Slurm's other variables.
int tasks_of_node(const std::string& tasks_per_node, int node, int num_tasks) {
  const std::vector<int> counts = expand_slurm_counts(tasks_per_node);
  const int64_t sum = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  if (sum != num_tasks) {
    fail(ExitCode::kTopology,
         "[ranks] SLURM_STEP_TASKS_PER_NODE={} adds up to {} tasks, but SLURM_STEP_NUM_TASKS is {}",
         tasks_per_node, sum, num_tasks);
  }
  if (node < static_cast<int>(counts.size())) return counts[static_cast<size_t>(node)];
  fail(ExitCode::kTopology, "[ranks] SLURM_NODEID is {}, but SLURM_STEP_TASKS_PER_NODE={} has {} nodes", node,
       tasks_per_node, counts.size());
}

RankInfo place_of_slurm(const Variables& variables) {
  RankInfo place;
  const char* count = "SLURM_STEP_NUM_TASKS";
  place.num_ranks = variables.small(count, count, 1, kMaxRanks);
  place.rank = variables.small("SLURM_PROCID", count, 0, place.num_ranks - 1);
  const int node = variables.small("SLURM_NODEID", count, 0, kMaxRanks);
  place.num_local_ranks =
      tasks_of_node(variables.text("SLURM_STEP_TASKS_PER_NODE", count), node, place.num_ranks);
  place.local_rank = variables.small("SLURM_LOCALID", count, 0, place.num_local_ranks - 1);
  check_torchrun_agrees(variables, place);
  const bool is_first_process = node == 0 && place.local_rank == 0;
  if ((place.rank == 0) != is_first_process && !variables.has("TYCHO_ADDRESS")) {
    fail(ExitCode::kTopology,
         "[ranks] SLURM_PROCID is {} and SLURM_NODEID {}, SLURM_LOCALID {}: rank 0 is not the first task of "
         "the first node, where the other ranks would look for it. Start with srun --distribution=block, or "
         "set TYCHO_ADDRESS to the host of rank 0",
         place.rank, node, place.local_rank);
  }
  place.address = expand_slurm_hosts(variables.text("SLURM_STEP_NODELIST", count)).front();
  const int64_t job = variables.number("SLURM_JOB_ID", count, 0, INT64_MAX / (2 * kStepsPerJob));
  const int64_t step = variables.number("SLURM_STEP_ID", count, 0, UINT32_MAX);
  place.port = kFirstSlurmPort + static_cast<int>((job * kStepsPerJob + step) % kNumSlurmPorts);
  // A job that was requeued keeps its number; ranks left from its last start must not join.
  place.job = fmt::format("slurm-{}.{}-{}", job, step, variables.find("SLURM_RESTART_COUNT").value_or("0"));
  place.source = "Slurm";
  return place;
}

/// Reads the variables of torchrun, and of the PyTorchJob of Kubernetes, which sets no local ranks.
RankInfo place_of_torchrun(const Variables& variables) {
  RankInfo place;
  const char* count = "WORLD_SIZE";
  place.num_ranks = variables.small(count, "RANK", 1, kMaxRanks);
  if (place.num_ranks > 1 || variables.has("RANK"))
    place.rank = variables.small("RANK", count, 0, place.num_ranks - 1);
  if (place.num_ranks == 1) return place;
  if (variables.has("LOCAL_RANK") || variables.has("LOCAL_WORLD_SIZE")) {
    place.num_local_ranks = variables.small("LOCAL_WORLD_SIZE", "LOCAL_RANK", 1, kMaxRanks);
    place.local_rank = variables.small("LOCAL_RANK", "LOCAL_WORLD_SIZE", 0, place.num_local_ranks - 1);
    check_local(place, "LOCAL_WORLD_SIZE", count);
  }
  if (!variables.has("TYCHO_ADDRESS")) place.address = variables.text("MASTER_ADDR", count);
  if (!variables.has("TYCHO_PORT")) place.port = variables.small("MASTER_PORT", count, 1, kMaxPort);
  place.job = fmt::format("{}-{}", variables.find("TORCHELASTIC_RUN_ID").value_or(""),
                          variables.find("TORCHELASTIC_RESTART_COUNT").value_or("0"));
  place.source = "RANK and WORLD_SIZE";
  return place;
}

/// Returns the number of tasks of the step; 0 where srun did not start this process: the batch script itself
/// and the shell of salloc have no step of several tasks, though SLURM_NTASKS is set in both.
int64_t num_step_tasks(const Variables& variables) {
  const char* count = "SLURM_STEP_NUM_TASKS";
  return variables.has(count) ? variables.number(count, count, 1, kMaxRanks) : 0;
}

RankInfo place_of_scheduler(const Variables& variables) {
  if (num_step_tasks(variables) > 1) return place_of_slurm(variables);
  if (variables.has("WORLD_SIZE") || variables.has("RANK")) return place_of_torchrun(variables);
  return {};
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

RankInfo find_rank_place(const Environment& variable) {
  const Variables variables(variable);
  if (variables.has("TYCHO_NUM_RANKS") || variables.has("TYCHO_RANK")) return place_of_launch(variables);
  RankInfo place = place_of_scheduler(variables);
  if (place.num_ranks == 1) return place;
  if (const auto address = variables.find("TYCHO_ADDRESS")) place.address = *address;
  if (variables.has("TYCHO_PORT")) place.port = variables.small("TYCHO_PORT", "TYCHO_PORT", 1, kMaxPort);
  if (const auto token = variables.find("TYCHO_TOKEN")) place.token = checked_token(*token);
  return place;
}

}  // namespace tycho
