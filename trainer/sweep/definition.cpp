// Definitions as files.
#include "trainer/sweep/definition.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/base/json_reader.h"

namespace tycho {
namespace {

constexpr size_t kIdDigits = 8, kHashDigits = 16;

Json to_json(const SweepDefinition& definition) {
  Json trials = Json::array();
  for (const TrialPlan& trial : definition.trials)
    trials.push_back({{"id", trial.id}, {"pins", trial.pins}, {"values", trial.values}});
  return {{"name", definition.name},
          {"folder", definition.folder},
          {"file", definition.file},
          {"arguments", definition.arguments},
          {"of_recipe", definition.of_recipe},
          {"recipe", definition.recipe},
          {"recipe_sources", definition.recipe_sources},
          {"sources", definition.sources},
          {"tree", definition.tree},
          {"trials", std::move(trials)}};
}

SweepDefinition from_file(const Json& json) {
  SweepDefinition definition;
  json.at("name").get_to(definition.name);
  json.at("folder").get_to(definition.folder);
  json.at("file").get_to(definition.file);
  json.at("arguments").get_to(definition.arguments);
  json.at("of_recipe").get_to(definition.of_recipe);
  json.at("recipe").get_to(definition.recipe);
  json.at("recipe_sources").get_to(definition.recipe_sources);
  json.at("sources").get_to(definition.sources);
  definition.tree = json.at("tree");
  for (const Json& one : json.at("trials")) {
    definition.trials.push_back({one.at("id"), one.at("pins").get<std::vector<std::string>>(),
                                 one.at("values").get<std::map<std::string, std::string>>()});
  }
  return definition;
}

}  // namespace

std::string recipe_identity_hash(const std::map<std::string, std::string>& recipe_sources,
                                 const std::map<std::string, std::string>& pins) {
  return hash_hex(canonical_json({{"sources", recipe_sources}, {"pins", pins}}));
}

std::string trial_id(std::vector<std::string> pins, const std::string& recipe_hash) {
  std::sort(pins.begin(), pins.end());
  return hash_hex(canonical_json({{"pins", pins}, {"recipe", recipe_hash}})).substr(0, kIdDigits);
}

std::string definition_hash(const SweepDefinition& definition) {
  return hash_hex(to_json(definition).dump()).substr(0, kHashDigits);
}

std::string write_definition(FileOps& files, const std::string& sweep_dir,
                             const SweepDefinition& definition) {
  const std::string hash = definition_hash(definition);
  const std::string folder = sweep_dir + "/definitions", path = folder + "/" + hash + ".json";
  make_dirs(files, folder);
  if (!std::filesystem::exists(path)) write_file_atomically(files, path, to_json(definition).dump(1) + "\n");
  return hash;
}

SweepDefinition read_definition(const std::string& sweep_dir, const std::string& hash) {
  const std::string path = sweep_dir + "/definitions/" + hash + ".json";
  const Json json = parse_json(read_file(path), path);
  try {
    SweepDefinition definition = from_file(json);
    std::vector<ConfigProblem> problems;
    definition.config = from_json<SweepConfig>(definition.tree, problems);
    if (problems.empty()) return definition;
    fail(ExitCode::kUnusable, "[sweep] {}: {}: {}; it was written by another version of Tycho", path,
         problems[0].path, problems[0].message);
  } catch (const Json::exception& error) {
    fail(ExitCode::kUnusable, "[sweep] {} is not the definition of a sweep: {}", path, error.what());
  }
}

std::string recipe_changes(const std::map<std::string, std::string>& before,
                           const std::map<std::string, std::string>& now) {
  std::string text;
  for (const auto& [file, hash] : before) {
    const auto found = now.find(file);
    if (found == now.end()) text += fmt::format("\n  {} is no longer used", file);
    if (found != now.end() && found->second != hash) text += fmt::format("\n  {} has changed", file);
  }
  for (const auto& [file, hash] : now)
    if (!before.contains(file)) text += fmt::format("\n  {} is new", file);
  return text;
}

std::string pins_text(const std::vector<std::string>& pins) {
  return fmt::format("{}", fmt::join(pins, " "));
}

}  // namespace tycho
