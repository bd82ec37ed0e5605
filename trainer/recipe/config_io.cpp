// The one place where the readers and writers of config structs are compiled for a whole run.
#include "trainer/recipe/config_io.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "trainer/base/error.h"
#include "trainer/base/function_ref.h"
#include "trainer/base/hash.h"
#include "trainer/base/json_reader.h"
#include "trainer/base/json_writer.h"
#include "trainer/base/schema.h"
#include "trainer/recipe/config_rules.h"

namespace tycho {
namespace {

/// Returns the value without the `at` of every function, since that changes when a line is added above it.
Json without_places(const Json& json) {
  if (is_function_ref(json)) return {{"hash", json.at("hash")}};
  if (!json.is_structured()) return json;
  Json out = json;
  for (auto& value : out) value = without_places(value);
  return out;
}

using Leaves = std::vector<std::pair<std::string, std::string>>;

bool is_formula(const Json& json) {
  return json.is_object() && json.contains("nodes") && json.contains("outputs");
}

bool has_formulas(const Json& json) {
  if (is_formula(json)) return true;
  return json.is_structured() && std::any_of(json.begin(), json.end(), has_formulas);
}

// A function is one value: where it stands makes no difference. Formulas fill pages: `tycho config --why`
// shows them.
void add_leaves(const Json& json, const std::string& path, Leaves& leaves) {
  if (is_function_ref(json)) {
    leaves.emplace_back(path, "function " + json.at("hash").get<std::string>().substr(0, 8));
    return;
  }
  if (is_formula(json) || (json.is_array() && has_formulas(json))) {
    leaves.emplace_back(path, "formulas " + hash_hex(canonical_json(json)).substr(0, 8));
    return;
  }
  if (!json.is_object()) {
    leaves.emplace_back(path, canonical_json(json));
    return;
  }
  for (const auto& [key, value] : json.items())
    add_leaves(value, path.empty() ? key : path + "." + key, leaves);
}

Leaves leaves_of(const Json& json) {
  Leaves leaves;
  add_leaves(json, "", leaves);
  return leaves;
}

using LeavesByPath = std::map<std::string_view, std::string_view>;

LeavesByPath by_path(const Leaves& leaves) { return {leaves.begin(), leaves.end()}; }

std::string value_at(const LeavesByPath& leaves, const std::string& path) {
  const auto found = leaves.find(path);
  return std::string(found == leaves.end() ? "" : found->second);
}

}  // namespace

Json train_config_schema() { return schema_of<TrainConfig>(); }

Json config_to_json(const TrainConfig& config) { return to_json(config); }

TrainConfig read_config(const Json& json, std::vector<ConfigProblem>& problems) {
  const size_t before = problems.size();
  const TrainConfig config = from_json<TrainConfig>(json, problems);
  if (problems.size() == before) {
    const std::vector<ConfigProblem> found = check_config(config);
    problems.insert(problems.end(), found.begin(), found.end());
  }
  return config;
}

void require_no_problems(const std::vector<ConfigProblem>& problems, ExitCode code,
                         const std::string& place) {
  if (problems.empty()) return;
  std::string text =
      fmt::format("[{}] {} problem{}", place, problems.size(), problems.size() == 1 ? "" : "s");
  for (const ConfigProblem& problem : problems)
    text += fmt::format("\n  {}: {}", problem.path, problem.message);
  fail(code, "{}", text);
}

void require_valid(const TrainConfig& config, int64_t num_ranks) {
  const std::vector<ConfigProblem> problems = check_config(config, num_ranks);
  if (problems.empty()) return;
  require_no_problems(problems, check_config(config).empty() ? ExitCode::kTopology : ExitCode::kRecipe);
}

TrainConfig read_config_or_fail(const Json& json) {
  std::vector<ConfigProblem> problems;
  const TrainConfig config = read_config(json, problems);
  require_no_problems(problems, ExitCode::kRecipe);
  return config;
}

TrainConfig read_trained_config(const Json& recipe, TrainedUse use, const std::string& checkpoint) {
  static constexpr std::array kOfModel = {"model", "seq_len", "precision"};
  static constexpr std::array kOfEvaluation = {"global_batch", "micro_batch", "tokenizer",
                                               "train_data",   "eval_data",   "eval"};
  const auto is_in = [](const auto& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<ConfigProblem> problems;
  const TrainConfig config = from_json<TrainConfig>(recipe, problems);
  std::erase_if(problems, [&](const ConfigProblem& problem) {
    const std::string key = problem.path.substr(0, problem.path.find_first_of(".["));
    return !is_in(kOfModel, key) && !(use == TrainedUse::kEvaluation && is_in(kOfEvaluation, key));
  });
  if (problems.empty()) problems = use == TrainedUse::kModel ? check_model(config) : check_evaluation(config);
  require_no_problems(problems, ExitCode::kRecipe, "recipe of " + checkpoint);
  return config;
}

std::string config_hash(const Json& resolved) {
  static constexpr std::array kWithoutEffect = {"/run_name",
                                                "/run_dir",
                                                "/resume",
                                                "/threads",
                                                "/parallel",
                                                "/machine",
                                                "/attention",
                                                "/lua_memory",
                                                "/eval_data",
                                                "/eval",
                                                "/ckpt",
                                                "/log",
                                                "/train_data/verify",
                                                "/fp8/gather",
                                                "/optimizer/number_limits"};
  Json kept = resolved;
  for (const char* key : kWithoutEffect) {
    const Json::json_pointer path(key);
    if (kept.contains(path)) kept.at(path.parent_pointer()).erase(path.back());
  }
  // Configs of versions without fp8 have the same meaning.
  const Json::json_pointer fp8("/fp8/recipe");
  if (kept.contains(fp8) && kept.at(fp8) == "none") kept.erase("fp8");
  return hash_hex(canonical_json(without_places(kept)));
}

std::vector<ConfigDifference> diff_configs(const Json& a, const Json& b) {
  const Leaves old_leaves = leaves_of(a), new_leaves = leaves_of(b);
  const LeavesByPath old_by_path = by_path(old_leaves), new_by_path = by_path(new_leaves);
  std::vector<ConfigDifference> differences;
  for (const auto& [path, value] : old_leaves) {
    const std::string new_value = value_at(new_by_path, path);
    if (new_value != value) differences.push_back({path, value, new_value});
  }
  for (const auto& [path, value] : new_leaves) {
    if (value_at(old_by_path, path).empty()) differences.push_back({path, "", value});
  }
  return differences;
}

}  // namespace tycho
