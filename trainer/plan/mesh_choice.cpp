// Tries every factoring of the number of ranks.
#include "trainer/plan/mesh_choice.h"

#include <algorithm>
#include <tuple>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/base/field_types.h"
#include "trainer/layout/stages.h"
#include "trainer/metrics/format.h"
#include "trainer/plan/estimate.h"
#include "trainer/plan/memory_choice.h"
#include "trainer/recipe/config_io.h"
#include "trainer/recipe/config_rules.h"

namespace tycho {
namespace {

constexpr size_t kShownBest = 3, kShownTooLarge = 3;

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> all;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) all.push_back(d);
  return all;
}

/// Returns every mesh of `num_ranks` ranks. tp stays within an NVLink domain, since it waits several times in
/// each block. cp is the recipe's: it is for sequences that are too long for one rank.
std::vector<MeshShape> all_meshes(int64_t num_ranks, int64_t most_tp, int64_t wanted_cp) {
  std::vector<MeshShape> all;
  const auto size = [](int64_t n) { return static_cast<int>(n); };
  for (const int64_t pp : divisors(num_ranks))
    for (const int64_t cp : divisors(num_ranks / pp))
      for (const int64_t tp : divisors(num_ranks / pp / cp)) {
        if (tp > most_tp || cp != wanted_cp) continue;
        const int64_t data = num_ranks / pp / cp / tp;
        for (const int64_t shard : divisors(data))
          all.push_back({{size(pp), size(data / shard), size(shard), size(cp), size(tp)}});
      }
  return all;
}

TrainConfig with_mesh(TrainConfig config, const MeshShape& mesh) {
  config.parallel = with_sizes(config.parallel, mesh);
  return config;
}

/// Returns true for a valid config. Checks the axes alone before the rules of the whole config, which take
/// longer.
bool is_legal(const TrainConfig& config, int64_t num_ranks) {
  ConfigProblems problems;
  check(config.parallel, num_ranks, problems);
  return problems.empty() && check_config(config, num_ranks).empty() && stage_problems(config).empty();
}

std::string memory_text(int64_t n) { return human_bytes(static_cast<double>(n)); }

/// Breaks a list of words into indented lines of at most 80 columns.
std::string wrapped(const std::string& text, size_t indent) {
  std::string out, line;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = text.find(", ", at);
    const std::string word = text.substr(at, end == std::string::npos ? end : end + 1 - at);
    if (!line.empty() && indent + line.size() + 1 + word.size() > 80) {
      out += std::string(indent, ' ') + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    at = end == std::string::npos ? text.size() : end + 2;
  }
  return line.empty() ? out : out + std::string(indent, ' ') + line + "\n";
}

}  // namespace

ParallelConfig with_sizes(ParallelConfig parallel, const MeshShape& mesh) {
  parallel.mesh = MeshSizes::kGiven;
  parallel.pp = mesh.size(Axis::kPp);
  parallel.dp_replicate = mesh.size(Axis::kDpReplicate);
  parallel.dp_shard = mesh.size(Axis::kDpShard);
  parallel.cp = mesh.size(Axis::kCp);
  parallel.tp = mesh.size(Axis::kTp);
  return parallel;
}

std::vector<MeshChoice> rank_meshes(const TrainConfig& config, const PlanDevices& devices) {
  const Machine machine = planned_machine(config, devices);
  const ModelLayout layout = model_layout(config.model);
  std::vector<MeshChoice> choices;
  for (const MeshShape& mesh : all_meshes(devices.num_ranks, ranks_per_domain(machine), config.parallel.cp)) {
    TrainConfig changed = with_mesh(config, mesh);
    if (!is_legal(changed, devices.num_ranks)) continue;
    std::string chosen;
    if (leaves_memory(config)) {
      const MemoryChoice memory = choose_memory(changed, layout, devices);
      changed = with_choice(changed, memory);
      if (leaves_recompute(config)) chosen = fmt::format("recompute {}", enum_name(memory.recompute));
      if (leaves_micro_batch(config))
        chosen += fmt::format("{}micro_batch {}sp", chosen.empty() ? "" : ", ", memory.sequences);
    }
    const Plan plan = plan_mesh(changed, layout, devices);
    const int64_t bytes = device_bytes(plan, machine);
    choices.push_back({mesh, *plan.estimate, plan.waits, bytes, chosen, bytes <= machine.memory_bytes});
  }
  if (choices.empty()) {
    MeshShape replicas;
    replicas.sizes[static_cast<size_t>(Axis::kDpReplicate)] = static_cast<int>(devices.num_ranks);
    require_valid(with_mesh(config, replicas), devices.num_ranks);
  }
  std::stable_sort(choices.begin(), choices.end(), [](const MeshChoice& a, const MeshChoice& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.time.tokens_per_s > b.time.tokens_per_s * (1 + 1e-9) : a.device_bytes < b.device_bytes;
  });
  return choices;
}

std::string choices_text(const std::vector<MeshChoice>& choices, const Machine& machine) {
  const auto num_fitting = static_cast<size_t>(
      std::count_if(choices.begin(), choices.end(), [](const auto& c) { return c.fits; }));
  std::string text = fmt::format("meshes: {} legal, {} fit into {} a rank\n", choices.size(), num_fitting,
                                 memory_text(machine.memory_bytes));
  if (num_fitting > 0)
    text += fmt::format("  {:<36}{:>10}{:>10}{:>9}{:>10}\n", "", "tokens/s", "step", "MFU", "memory");
  for (size_t i = 0; i < std::min(num_fitting, kShownBest); ++i) {
    const MeshChoice& one = choices[i];
    text +=
        fmt::format("  {:<36}{:>10}{:>10}{:>9}{:>10}\n", fmt::format("{}. {}", i + 1, describe(one.mesh)),
                    human_count(one.time.tokens_per_s), fmt::format("{:.3g} s", one.time.step_s),
                    machine.gpu.empty() ? "-" : percent_text(one.time.mfu), memory_text(one.device_bytes));
    if (!one.chosen.empty()) text += fmt::format("     {}\n", one.chosen);
    if (!one.waits.empty()) text += wrapped("waits: " + one.waits, 5);
  }
  for (size_t i = num_fitting; i < std::min(choices.size(), num_fitting + kShownTooLarge); ++i)
    text += fmt::format("  does not fit: {:<34}{:>10}, {} too much\n", describe(choices[i].mesh),
                        memory_text(choices[i].device_bytes),
                        memory_text(choices[i].device_bytes - machine.memory_bytes));
  return text;
}

MeshChoice best_mesh(const std::vector<MeshChoice>& choices, const Machine& machine) {
  if (!choices.empty() && choices.front().fits) return choices.front();
  fail(ExitCode::kTopology,
       "[plan] expected a mesh that fits into {} a rank, and none does:\n{}Start more ranks, or set "
       "recompute.mode = \"full\" or a smaller micro_batch",
       memory_text(machine.memory_bytes), choices_text(choices, machine));
}

}  // namespace tycho
