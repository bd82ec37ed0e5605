// The rules between the keys of logging.
#include "trainer/metrics/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <type_traits>

#include "trainer/base/config_problems.h"
#include "trainer/metrics/run_name.h"

namespace tycho {
namespace {

/// What a sink writes to, relative to others of its kind.
std::string target_of(const SinkConfig& sink) {
  return std::visit(
      [](const auto& kind) -> std::string {
        if constexpr (requires { kind.dir; }) {
          return kind.dir;
        } else if constexpr (requires { kind.file; }) {
          return kind.file;
        } else {
          return "";
        }
      },
      sink.value);
}

void check_wandb(const std::string& path, const WandbSinkConfig& wandb, ConfigProblems& problems) {
  if (wandb.mode != "offline")
    problems.add(
        path + ".mode",
        "wanted \"offline\", given \"{}\": a run sends nothing itself; write offline, and upload its "
        "folders with `wandb sync PATH` whenever you like",
        wandb.mode);
  // What W&B does not take in a project's name.
  if (wandb.project.empty() || wandb.project.find_first_of("/\\#?%:") != std::string::npos)
    problems.add(path + ".project",
                 "\"{}\" cannot be the name of a project: write one without / \\ # ? % :", wandb.project);
}

void check_file(const std::string& path, const std::string& file, ConfigProblems& problems) {
  if (has_other_braces(file)) problems.add(path, "\"{}\": only {} can be in braces", file, kRunNameMark);
  if (file.ends_with('/')) problems.add(path, "\"{}\" is a folder; write a file in it", file);
}

}  // namespace

void check(const LogConfig& log, ConfigProblems& problems) {
  std::set<std::string> targets;
  bool has_jsonl = false;
  for (size_t i = 0; i < log.sinks.size(); ++i) {
    const SinkConfig& sink = log.sinks[i];
    const std::string path = fmt::format("log.sinks[{}]", i + 1), target = target_of(sink);
    if (!targets.insert(fmt::format("{} {}", sink.kind(), target)).second)
      problems.add(path, "is a second t.log.{} for {}; list it once", sink.kind(),
                   target.empty() ? "the same file" : "\"" + target + "\"");
    has_jsonl |= sink.is<JsonlSinkConfig>();
    if (sink.is<WandbSinkConfig>()) check_wandb(path, sink.as<WandbSinkConfig>(), problems);
    if (sink.is<CsvSinkConfig>()) check_file(path + ".file", target, problems);
    if (!sink.is<PrometheusSinkConfig>()) continue;
    check_file(path + ".file", target, problems);
    if (!target.ends_with(".prom"))
      problems.add(path + ".file",
                   "\"{}\" does not end in .prom, and node_exporter reads no other file; write "
                   "\"FOLDER/{}.prom\"",
                   target, kRunNameMark);
  }
  if (!has_jsonl)
    problems.add("log.sinks",
                 "lacks t.log.jsonl {{}}, whose file plots, sweeps and `tycho ctl` read; add it");
}

}  // namespace tycho
