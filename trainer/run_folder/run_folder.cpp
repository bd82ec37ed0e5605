// Writes the record of a run into its folder.
#include "trainer/run_folder/run_folder.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <set>
#include <string_view>

#include "trainer/base/error.h"
#include "trainer/base/shell_words.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// Written last: a record without it is not complete.
constexpr const char* kLastFile = "recipe.json";
/// Masked by names of variables, which do not tell every secret.
constexpr const char* kEnvironmentFile = "env.json";
constexpr const char* kSourcesFolder = "sources";
constexpr std::array kSecretWords = {"KEY",  "_PWD", "TOKEN", "SECRET", "PASS",
                                     "CRED", "AUTH", "SAS",   "COOKIE"};

/// Path inside a record -> text.
using Record = std::map<std::string, std::string>;

bool looks_secret(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return std::any_of(kSecretWords.begin(), kSecretWords.end(),
                     [&](const char* word) { return upper.find(word) != std::string::npos; });
}

/// "https://user:pass@host/x?sig=abc" -> "https://***@host/x?***": addresses carry keys in both places.
std::string without_url_secrets(std::string text) {
  for (size_t at = text.find("://"); at != std::string::npos; at = text.find("://", at + 3)) {
    const size_t begin = at + 3;
    const auto end_of = [&](const char* stops) {
      return std::min(text.find_first_of(stops, begin), text.size());
    };
    const size_t query = text.find('?', begin), end = end_of(" \t\n'\"");
    if (query < end) text.replace(query + 1, end - query - 1, "***");
    const size_t user_end = text.substr(begin, end_of("/? \t\n'\"") - begin).rfind('@');
    if (user_end != std::string::npos) text.replace(begin, user_end, "***");
  }
  return text;
}

/// The environment, also without what the recipe read as a secret: its provenance has that masked.
Json environment_of(const RunRequest& request) {
  Json environment = environment_without_secrets();
  const Json provenance = Json::parse(request.provenance_json, nullptr, false);
  for (auto& [name, value] : environment.items()) {
    const auto read = provenance.find("env." + name);
    if (read != provenance.end() && read->at(0).at("value") == kMasked) value = kMasked;
  }
  return environment;
}

Record make_record(const RunRequest& request, const Json& versions) {
  const auto pretty = [](const Json& json) {
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  };
  std::vector<std::string> argv;
  for (const std::string& arg : request.argv) argv.push_back(without_url_secrets(arg));
  Record record = {{"recipe.lua", request.recipe_lua},
                   {kLastFile, request.config_json},
                   {"provenance.json", request.provenance_json},
                   {"argv.txt", shell_line(argv) + "\n"},
                   {kEnvironmentFile, pretty(environment_of(request))},
                   {"versions.json", pretty(versions)}};
  std::vector<std::string> names;
  for (const auto& [name, text] : request.sources) names.push_back(name);
  for (const auto& [name, place] : source_places(names)) record[place] = request.sources.at(name);
  return record;
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

/// The record that stands in the run folder itself.
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

/// Each start that differs is kept as attempt-<n>, the first one too once there is a second. In the folder
/// itself stands the newest. A failure in between leaves the attempts whole, and the next start mends the
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

void write_run_folder(FileOps& files, const std::string& run_dir, const RunRequest& request,
                      const Json& versions) {
  const Record record = make_record(request, versions);
  const auto fail_folder = [&](std::string reason) {
    const size_t place_end = reason.find("] ");
    if (place_end != std::string::npos) reason.erase(0, place_end + 2);
    fail(ExitCode::kStorage, "[run folder] cannot write {}: {}; choose another folder with run_dir=PATH",
         run_dir, reason);
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

Json environment_without_secrets() {
  std::map<std::string, std::string> sorted;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = std::min(text.find('='), text.size());
    const std::string name(text.substr(0, equals));
    const std::string value(text.substr(std::min(equals + 1, text.size())));
    sorted[name] = looks_secret(name) ? kMasked : without_url_secrets(value);
  }
  Json environment = Json::object();
  for (const auto& [name, value] : sorted) environment[name] = value;
  return environment;
}

}  // namespace tycho
