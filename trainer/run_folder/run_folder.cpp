// Writes the record of a run into its folder.
#include "trainer/run_folder/run_folder.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/json_writer.h"
#include "trainer/base/secrets.h"
#include "trainer/base/text/shell_words.h"
#include "trainer/base/text/without_place.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/lock/run_lock.h"
#include "trainer/recipe/config_io.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// Written last: a record without it is incomplete.
constexpr const char* kLastFile = "recipe.json";
/// Masked by the names of variables, which do not reveal every secret.
constexpr const char* kEnvironmentFile = "env.json";
constexpr const char* kSourcesFolder = "sources";
/// Variables whose values env.json keeps, by prefix and by name. A value may still be masked.
constexpr std::array<std::string_view, 20> kRecordedPrefixes = {
    "SLURM_", "SBATCH_", "CUDA_",    "NVIDIA_", "NCCL_",  "GLOO_", "OMP_", "KMP_", "GOMP_", "MKL_",
    "ATEN_",  "TORCH_",  "PYTORCH_", "KINETO_", "TYCHO_", "UCX_",  "FI_",  "PMI_", "PMIX_", "MALLOC_"};
constexpr std::array<std::string_view, 18> kRecordedNames = {"PATH",        "LD_LIBRARY_PATH",
                                                             "LD_PRELOAD",  "GLIBC_TUNABLES",
                                                             "HOSTNAME",    "PWD",
                                                             "TMPDIR",      "TZ",
                                                             "LANG",        "LC_ALL",
                                                             "LC_CTYPE",    "LC_NUMERIC",
                                                             "RANK",        "WORLD_SIZE",
                                                             "LOCAL_RANK",  "LOCAL_WORLD_SIZE",
                                                             "MASTER_ADDR", "MASTER_PORT"};
/// Endings of output files that a scheduler or a shell writes into the folder before the run begins.
constexpr std::array<std::string_view, 3> kLogEndings = {".out", ".err", ".log"};
/// Files that a run writes before its record is complete, and those that users copy from another folder to
/// continue a run.
constexpr std::array<std::string_view, 6> kHarmlessNames = {kOutputFile, "metrics.jsonl", "events.jsonl",
                                                            "log.txt",   "ctl",           "lost+found"};

/// Path inside a record -> text.
using Record = std::map<std::string, std::string>;

bool is_recorded(std::string_view name) {
  const auto begins_name = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return std::any_of(kRecordedPrefixes.begin(), kRecordedPrefixes.end(), begins_name) ||
         std::find(kRecordedNames.begin(), kRecordedNames.end(), name) != kRecordedNames.end();
}

/// Returns the environment variables that the recipe read, by name; "***" for secrets.
std::map<std::string, Json> read_variables(const RunRequest& request) {
  constexpr std::string_view kPrefix = "env.";
  std::map<std::string, Json> values;
  const Json provenance = Json::parse(request.provenance_json, nullptr, false);
  if (!provenance.is_object()) return values;
  for (const auto& [path, history] : provenance.items())
    if (path.starts_with(kPrefix)) values[path.substr(kPrefix.size())] = history.at(0).at("value");
  return values;
}

/// Returns the environment. Variables that the recipe read keep their value whatever their name is, because
/// they decide what is trained.
Json environment_of(const RunRequest& request) {
  Json environment = recorded_environment();
  for (const auto& [name, value] : read_variables(request))
    if (environment.contains(name)) environment[name] = value;
  return environment;
}

Record make_record(const RunRequest& request, const Json& versions) {
  const auto pretty = [](const Json& json) {
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  };
  std::vector<std::string> argv;
  for (const std::string& arg : request.argv) argv.push_back(without_secrets(arg));
  Record record = {{"recipe.lua", request.recipe_lua},
                   {kLastFile, recipe_json(request)},
                   {"provenance.json", request.provenance_json},
                   {"argv.txt", shell_line(argv) + "\n"},
                   {kEnvironmentFile, pretty(environment_of(request))},
                   {"versions.json", pretty(versions)}};
  std::vector<std::string> names;
  for (const auto& [name, text] : request.sources) names.push_back(name);
  for (const auto& [name, place] : source_places(names)) record[place] = request.sources.at(name);
  return record;
}

/// Returns true when a checkpoints/ holds only entries of a run.
bool are_checkpoints(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!step_of_folder_name(name) && !name.starts_with(kLatestFile) && !name.starts_with('.')) return false;
  }
  return !error;
}

/// Returns true when an entry of a folder may exist before its first run.
bool is_harmless(const fs::path& path) {
  const std::string name = path.filename().string();
  const auto ends_name = [&](std::string_view ending) { return name.ends_with(ending); };
  return name.starts_with('.') || name.starts_with("LOCK") ||
         (name == "checkpoints" && are_checkpoints(path)) ||
         std::find(kHarmlessNames.begin(), kHarmlessNames.end(), name) != kHarmlessNames.end() ||
         std::any_of(kLogEndings.begin(), kLogEndings.end(), ends_name);
}

bool is_complete(const fs::path& folder) { return fs::exists(folder / kLastFile); }

bool is_written(const fs::path& folder, const Record& record) {
  return std::all_of(record.begin(), record.end(), [&](const auto& file) {
    const fs::path path = folder / file.first;
    return fs::exists(path) && read_file(path.string()) == file.second;
  });
}

fs::path attempt_folder(const fs::path& run_dir, int number) {
  return run_dir / fmt::format("attempt-{}", number);
}

void write_record(FileOps& files, const fs::path& folder, const Record& record) {
  const auto write = [&](const std::string& name, const std::string& text) {
    const fs::path path = folder / name;
    make_dirs(files, path.parent_path().string());
    write_file_atomically(files, path.string(), text,
                          name == kEnvironmentFile ? Readers::kOwner : Readers::kUmask);
  };
  make_dirs(files, folder.string());
  for (const auto& [name, text] : record) {
    if (name != kLastFile) write(name, text);
  }
  write(kLastFile, record.at(kLastFile));
}

/// Returns the record in the run folder itself.
Record standing_record(const fs::path& run_dir) {
  Record record;
  for (const char* name :
       {"recipe.lua", kLastFile, "provenance.json", "argv.txt", kEnvironmentFile, "versions.json"})
    if (fs::exists(run_dir / name)) record[name] = read_file((run_dir / name).string());
  if (!fs::exists(run_dir / kSourcesFolder)) return record;
  for (const auto& entry : fs::recursive_directory_iterator(run_dir / kSourcesFolder))
    if (entry.is_regular_file())
      record[fs::relative(entry.path(), run_dir).string()] = read_file(entry.path().string());
  return record;
}

/// Keeps each start that differs as attempt-<n>, the first one too once there is a second. The folder itself
/// has the newest. After a failure in between, the attempts are complete, and the next start repairs the
/// rest.
void write_where_due(FileOps& files, const fs::path& run_dir, const Record& record) {
  if (!is_complete(run_dir)) return write_record(files, run_dir, record);
  int number = 2;
  while (fs::exists(attempt_folder(run_dir, number))) ++number;
  if (!is_written(newest_record(run_dir.string()), record)) {
    if (!is_complete(attempt_folder(run_dir, 1)))
      write_record(files, attempt_folder(run_dir, 1), standing_record(run_dir));
    write_record(files, attempt_folder(run_dir, number), record);
  }
  if (!is_written(run_dir, record)) write_record(files, run_dir, record);
}

}  // namespace

std::string recipe_json(const RunRequest& request) { return canonical_json(config_to_json(request.config)); }

void register_read_secrets(const RunRequest& request) {
  for (const auto& [name, value] : read_variables(request)) {
    if (value != kMasked) continue;
    if (const std::string secret = environment_variable(name.c_str()); !secret.empty())
      register_secret(secret);
  }
}

void require_own_folder(const std::string& run_dir) {
  std::error_code error;
  const bool has_record =
      fs::exists(run_dir + "/" + kLastFile, error) && fs::exists(run_dir + "/provenance.json", error);
  if (has_record || names_owner(run_dir)) return;
  for (fs::directory_iterator it(run_dir, error), end; !error && it != end; it.increment(error))
    if (!is_harmless(it->path()))
      fail(ExitCode::kFolderOwned,
           "[run folder] {} is not a run folder: it holds {}, and the run would mix its files with yours. "
           "Choose a new or empty folder with run_dir=PATH",
           run_dir, it->path().filename().string());
}

void write_run_folder(FileOps& files, const std::string& run_dir, const RunRequest& request,
                      const Json& versions) {
  const Record record = make_record(request, versions);
  const auto fail_folder = [&](const std::string& reason) {
    fail(ExitCode::kStorage, "[run folder] cannot write {}: {}; choose another folder with run_dir=PATH",
         run_dir, without_place(reason));
  };
  try {
    write_where_due(files, run_dir, record);
  } catch (const Error& error) {
    fail_folder(error.what());
  } catch (const fs::filesystem_error& error) {
    fail_folder(error.code().message());
  }
}

bool holds_record(const std::string& run_dir) { return is_complete(run_dir); }

std::string newest_record(const std::string& run_dir) {
  if (!is_complete(run_dir)) {
    fail(ExitCode::kUsage, "[run folder] {} is not a run folder: it has no {}", run_dir, kLastFile);
  }
  fs::path newest = run_dir;
  for (int number = 2; fs::exists(attempt_folder(run_dir, number)); ++number) {
    if (is_complete(attempt_folder(run_dir, number))) newest = attempt_folder(run_dir, number);
  }
  return newest.string();
}

std::map<std::string, std::string> source_places(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::map<std::string, std::string> places;
  std::set<std::string> taken;
  for (const std::string& name : names) {
    fs::path path = kSourcesFolder;
    for (const fs::path& part : fs::path(name).lexically_normal().relative_path()) {
      path /= part == ".." ? fs::path("up") : part;
    }
    while (!taken.insert(path.string()).second) path += "~";
    places[name] = path.string();
  }
  return places;
}

Json recorded_environment() {
  std::map<std::string, Json> sorted;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = std::min(text.find('='), text.size());
    const std::string name(text.substr(0, equals));
    const std::string value(text.substr(std::min(equals + 1, text.size())));
    sorted[name] = is_recorded(name) ? Json(recordable_value(name, value)) : Json(nullptr);
  }
  Json environment = Json::object();
  for (auto& [name, value] : sorted) environment[name] = std::move(value);
  return environment;
}

std::string recordable_value(std::string_view name, const std::string& value) {
  return is_secret_name(name) ? kMasked : without_secrets(value);
}

}  // namespace tycho
