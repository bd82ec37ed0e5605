// Compares hashes first and texts only when they differ.
#include "trainer/run/recipe_check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/comm/collective_strings.h"
#include "trainer/recipe/config_io.h"

namespace tycho {
namespace {

constexpr size_t kMaxDifferences = 8;

Json identity(const RunRequest& request) {
  Json sources = Json::object();
  for (const auto& [file, text] : request.sources) sources[file] = hash_hex(text);
  return {{"recipe", config_to_json(request.config)},
          {"file", std::move(sources)},
          {"schedule", factors_of(request.config.scheduler)}};
}

/// Ends this start on all ranks if their caches, or the hub, told them other commits of a branch. Collective.
void require_same_commits(Communicator& world, const RunRequest& request) {
  const std::vector<std::string> all = all_gather_strings(world, Json(request.commits).dump());
  const auto other = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one != all[0]; });
  if (other == all.end()) return;
  const auto of_rank_0 = parse_json(all[0], "rank 0").get<std::map<std::string, std::string>>();
  if (request.commits_of_rank_0 != nullptr) *request.commits_of_rank_0 = of_rank_0;
  const Json commits = parse_json(*other, "another rank");
  for (const auto& [name, commit] : of_rank_0)
    if (const std::string theirs = commits.value(name, ""); theirs != commit)
      fail(ExitCode::kTopology,
           "[hub] {} is commit {} for rank 0 and {} for rank {}: run  tycho fetch  on each machine, or write "
           "the commit into the name",
           name, commit, theirs.empty() ? "unknown" : theirs, other - all.begin());
}

std::string text_of(const std::string& value) { return value.empty() ? "(not there)" : value; }

}  // namespace

void require_same_recipe(Communicator& world, const RunRequest& request) {
  if (world.size() == 1) return;
  const std::string mine = identity(request).dump();
  const std::vector<std::string> hashes = all_gather_strings(world, hash_hex(mine));
  const auto other =
      std::find_if(hashes.begin(), hashes.end(), [&](const auto& h) { return h != hashes[0]; });
  if (other == hashes.end()) return;
  require_same_commits(world, request);
  const std::vector<std::string> all = all_gather_strings(world, mine);
  const auto rank = static_cast<size_t>(other - hashes.begin());
  const std::vector<ConfigDifference> differences =
      diff_configs(parse_json(all[0], "rank 0"), parse_json(all[rank], "another rank"));
  std::vector<std::string> lines;
  for (const ConfigDifference& difference : differences) {
    if (lines.size() == kMaxDifferences) {
      lines.push_back(fmt::format("and {} more", differences.size() - kMaxDifferences));
      break;
    }
    lines.push_back(fmt::format("{:<36} {} -> {}", difference.path, text_of(difference.old_value),
                                text_of(difference.new_value)));
  }
  fail(ExitCode::kTopology,
       "[recipe] rank {} has a different configuration than rank 0 (rank 0 -> rank {}):\n"
       "  {}\n"
       "Start all ranks with the same program, the same files and the same arguments",
       rank, rank, fmt::join(lines, "\n  "));
}

}  // namespace tycho
