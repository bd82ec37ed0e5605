// The rules between the keys of logging.
#include "trainer/recipe/log.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <type_traits>

#include "trainer/base/config_problems.h"
#include "trainer/recipe/run_name.h"

namespace tycho {
namespace {

/// Returns the target of a sink, comparable with those of its kind.
std::string target_of(const SinkConfig& sink) {
  return std::visit(
      [](const auto& kind) -> std::string {
        if constexpr (requires { kind.dir; }) {
          return kind.dir;
        } else if constexpr (requires { kind.port; }) {
          return kind.file.empty() && kind.port > 0 ? fmt::format("port {}", kind.port) : kind.file;
        } else if constexpr (requires { kind.tracking_uri; }) {
          return kind.tracking_uri;
        } else if constexpr (requires { kind.file; }) {
          return kind.file;
        } else {
          return "";
        }
      },
      sink.value);
}

void check_wandb(const std::string& path, const WandbSinkConfig& wandb, ConfigProblems& problems) {
  if (!wandb.mode.empty() && wandb.mode != "online" && wandb.mode != "offline")
    problems.add(path + ".mode",
                 "expected \"online\" or \"offline\", got \"{}\": write one of them, or leave it out and set "
                 "WANDB_MODE",
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

void check_prometheus(const std::string& path, const PrometheusSinkConfig& prometheus,
                      ConfigProblems& problems) {
  if (prometheus.file.empty() && prometheus.port == 0)
    return problems.add(path, "has neither file nor port: write file = \"FOLDER/{}.prom\" or port = 9400",
                        kRunNameMark);
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  if (::inet_pton(AF_INET, prometheus.host.c_str(), bytes.data()) != 1 &&
      ::inet_pton(AF_INET6, prometheus.host.c_str(), bytes.data()) != 1)
    problems.add(path + ".host", "\"{}\" is not an address in numbers, such as 127.0.0.1 or ::1",
                 prometheus.host);
  if (prometheus.file.empty()) return;
  check_file(path + ".file", prometheus.file, problems);
  if (!prometheus.file.ends_with(".prom"))
    problems.add(path + ".file",
                 "\"{}\" does not end in .prom, and node_exporter reads no other file; write "
                 "\"FOLDER/{}.prom\"",
                 prometheus.file, kRunNameMark);
}

void check_mlflow(const std::string& path, const MlflowSinkConfig& mlflow, ConfigProblems& problems) {
  if (const std::string problem = tracking_uri_problem(mlflow.tracking_uri); !problem.empty())
    problems.add(path + ".tracking_uri", "{}", problem);
  if (mlflow.experiment.empty()) problems.add(path + ".experiment", "is empty: write the name of one");
}

}  // namespace

std::string tracking_uri_problem(const std::string& uri) {
  const size_t scheme_end = uri.find("://");
  const bool server = uri.starts_with("http://") || uri.starts_with("https://");
  const size_t host_begin = scheme_end == std::string::npos ? 0 : scheme_end + 3;
  if (server && uri.substr(host_begin, uri.find('/', host_begin) - host_begin).find('@') != std::string::npos)
    return "holds a password, which would be kept in the run folder: leave out the part before @, and set "
           "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD";
  if (server && (uri.size() == host_begin || uri.find_first_of(" ?#") != std::string::npos))
    return fmt::format("\"{}\" is not the address of a server; write https://HOST:PORT", uri);
  if (uri == "databricks" || uri.starts_with("databricks://"))
    return "write https://HOST of the workspace, and set MLFLOW_TRACKING_TOKEN";
  if (!server && !uri.starts_with("file:///") && scheme_end != std::string::npos)
    return fmt::format(
        "expected http://, https:// or a folder, got \"{}\": start `mlflow server --backend-store-uri {}`, "
        "and write its address",
        uri, uri);
  return "";
}

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
    if (sink.is<PrometheusSinkConfig>()) check_prometheus(path, sink.as<PrometheusSinkConfig>(), problems);
    if (sink.is<MlflowSinkConfig>()) check_mlflow(path, sink.as<MlflowSinkConfig>(), problems);
  }
  if (!has_jsonl)
    problems.add("log.sinks",
                 "lacks t.log.jsonl {{}}, whose file plots, sweeps and `tycho ctl` read; add it");
}

}  // namespace tycho
