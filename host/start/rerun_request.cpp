// Ranks, and the launcher that starts them, make the same request.
#include "host/start/rerun_request.h"

#include <algorithm>
#include <cstdlib>

#include "bindings/import/import.h"
#include "host/recipe_words.h"
#include "host/verb.h"
#include "trainer/base/error.h"
#include "trainer/base/secrets.h"
#include "trainer/base/text/shell_words.h"
#include "trainer/run_folder/run_record.h"

namespace tycho {
namespace {

const Verb& run_verb() {
  static const Verb verb = {"run", kRunSpec, run_run};
  return verb;
}

/// Returns the arguments of the `tycho run` that started the run.
std::vector<std::string> old_arguments(const RunRecord& record) {
  const std::vector<std::string>& argv = record.argv;
  if (argv.size() < 3 || argv[0] != "tycho" || argv[1] != "run") {
    fail(ExitCode::kUnusable, "[tycho rerun] {}/argv.txt does not hold a `tycho run` command: {}",
         record.folder, shell_line(argv));
  }
  return {argv.begin() + 2, argv.end()};
}

/// Sets a variable to its value in a run, or unsets it for null. A masked one keeps its present value.
void restore_variable(const std::string& name, const Json& value) {
  if (value.is_null())
    unsetenv(name.c_str());
  else if (value.is_string() && value.get<std::string>().find(kMasked) == std::string::npos)
    setenv(name.c_str(), value.get<std::string>().c_str(), /*overwrite=*/1);
}

/// Restores the variables that the recipe read, and the search path for its files, which determines the names
/// of its sources.
void restore_environment(const RunRecord& record) {
  constexpr std::string_view kKey = "env.";
  constexpr const char* kSearchPath = "TYCHO_PATH";
  if (!record.environment.empty())
    restore_variable(kSearchPath, record.environment.value(kSearchPath, Json()));
  for (const auto& [key, history] : record.provenance.items())
    if (key.starts_with(kKey)) restore_variable(key.substr(kKey.size()), history.at(0).at("value"));
}

bool names_folder(const std::string& word) {
  return word.starts_with("run_name=") || word.starts_with("run_dir=");
}

/// Returns true when this process may choose a free name. Several ranks may not: they would look at different
/// times and find each other's folder, so the user must name the folder, which is resumed if it exists.
bool chooses_folder(const std::vector<std::string>& words, int64_t num_ranks) {
  if (num_ranks == 1) return true;
  if (std::any_of(words.begin(), words.end(), names_folder)) return false;
  fail(ExitCode::kUsage,
       "[tycho rerun] {} ranks need run_name=NAME or run_dir=FOLDER among the arguments, got {}", num_ranks,
       shell_line(words));
}

}  // namespace

RecipeRequest RerunRequest::recipe_request() const {
  bool help = false;
  RecipeRequest request = recipe_words(parse_arguments(run_verb(), argv, help));
  request.files = sources;
  request.only_files = true;
  request.trace = trace;
  import_request(request);
  return request;
}

RerunRequest rerun_request(const Arguments& arguments, int64_t num_ranks) {
  const RunRecord record = read_run_record(word(arguments, 0, "the folder of a run"));
  RerunRequest rerun = {
      .folder = record.folder, .argv = old_arguments(record), .trace = arguments.has("trace")};
  for (size_t i = 1; i < arguments.words.size(); ++i) {
    if (!is_override(arguments.words[i])) no_more_words(arguments, i);
    rerun.argv.push_back(arguments.words[i]);
  }
  rerun.may_choose_folder = chooses_folder(arguments.words, num_ranks);
  rerun.sources = read_run_sources(record);
  restore_environment(record);
  return rerun;
}

}  // namespace tycho
