// Reads records of run folders.
#include "trainer/run_folder/run_record.h"

#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/hash.h"
#include "trainer/base/text/shell_words.h"
#include "trainer/callbacks/command.h"
#include "trainer/run_folder/run_folder.h"

namespace tycho {
namespace {

constexpr std::string_view kSourceKey = "source.";

/// Returns the hash of each source in provenance.json, by source name.
std::map<std::string, std::string> source_hashes(const RunRecord& record) {
  std::map<std::string, std::string> hashes;
  for (const auto& [key, history] : record.provenance.items()) {
    if (key.starts_with(kSourceKey)) hashes[key.substr(kSourceKey.size())] = history.at(0).at("value");
  }
  return hashes;
}

/// Returns true if a warning's facts say that this command has ended.
bool has_ended(const Json& command, const Json& facts) {
  if (!facts.contains(kEndedCommand)) return false;
  const bool has_key = facts.contains(kEndedKey);
  const bool is_key = has_key && command.at("key") == facts[kEndedKey];
  if (command.at("name") == facts[kEndedCommand]) return is_key || !has_key;
  return is_key && command.at("name") == "set_optimizer";  // which can stand for set_lr and its like
}

}  // namespace

RunRecord read_run_record(const std::string& run_dir) {
  RunRecord record;
  record.folder = newest_record(run_dir);
  const auto read = [&](const char* name) { return read_file(record.folder + "/" + name); };
  record.config = parse_json(read("recipe.json"), record.folder + "/recipe.json");
  record.provenance = parse_json(read("provenance.json"), record.folder + "/provenance.json");
  const std::string environment = record.folder + "/env.json";
  record.environment =
      ::access(environment.c_str(), R_OK) == 0 ? parse_json(read("env.json"), environment) : Json::object();
  record.argv = split_shell_line(read("argv.txt"));
  return record;
}

std::map<std::string, std::string> read_run_sources(const RunRecord& record) {
  const std::map<std::string, std::string> hashes = source_hashes(record);
  std::vector<std::string> names;
  for (const auto& [name, hash] : hashes) names.push_back(name);
  std::map<std::string, std::string> sources;
  std::string problems;
  for (const auto& [name, place] : source_places(names)) {
    const std::string path = record.folder + "/" + place;
    if (!std::filesystem::is_regular_file(path)) {
      problems += fmt::format("\n  {}: no {}", name, path);
      continue;
    }
    sources[name] = read_file(path);
    if (hash_hex(sources[name]) != hashes.at(name))
      problems += fmt::format("\n  {}: {} was changed after the run started", name, path);
  }
  if (names.empty()) problems = "\n  none are recorded in provenance.json";
  if (!problems.empty()) {
    fail(ExitCode::kUnusable,
         "[run folder] {} does not contain the original recipe:{}\n"
         "{}/recipe.lua has every value resolved and can be run",
         record.folder, problems, record.folder);
  }
  return sources;
}

Json applied_commands(const std::string& run_dir) {
  const std::string path = run_dir + "/events.jsonl";
  std::istringstream events(std::filesystem::exists(path) ? read_file(path) : "");
  Json commands = Json::array();
  for (std::string line; std::getline(events, line);) {
    // Most lines are none of these; the last one may be half written.
    if (line.find("\"command\"") == std::string::npos && line.find("\"resume\"") == std::string::npos &&
        line.find(kEndedCommand) == std::string::npos)
      continue;
    const Json event = Json::parse(line, nullptr, false);
    if (!event.is_object() || !event.contains("facts")) continue;
    const Json &facts = event["facts"], &kind = event["kind"];
    const int64_t step = facts.value("step", int64_t{0});
    if (kind == "resume")
      std::erase_if(commands.get_ref<Json::array_t&>(),
                    [&](const Json& one) { return one.at("step") > step; });
    std::erase_if(commands.get_ref<Json::array_t&>(), [&](const Json& one) { return has_ended(one, facts); });
    if (kind != "command" || !facts.contains("command")) continue;
    commands.push_back(facts["command"]);
    commands.back()["step"] = step;
    commands.back()["key"] = key_of(command_from_json(facts["command"]));
  }
  return commands;
}

}  // namespace tycho
