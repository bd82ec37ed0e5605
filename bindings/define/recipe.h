// Recipes for the host: a file and arguments in, a checked config and its history out. Torch-free.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bindings/define/lua_util.h"
#include "bindings/define/source_file.h"
#include "bindings/define/watch.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/recipe/icl.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Problems or warnings of a recipe as data: [{file, line, column or argument, path, message, expected, got,
/// suggestion}], as far as each is known.
using ProblemList = Json;

/// A recipe with errors: the report for display, and its problems.
class RecipeError : public Error {
 public:
  RecipeError(const std::string& report, ProblemList problems, ExitCode code = ExitCode::kRecipe)
      : Error(report, code), problems_(std::move(problems)) {}
  const ProblemList& problems() const { return problems_; }

 private:
  ProblemList problems_;
};

/// One `key=value` of the command line; `number` is its position after the verb, from 1.
struct PinArgument {
  int number = 0;
  std::string text;
};

/// A file of another system from which a recipe was imported.
struct RecipeOrigin {
  std::string text;
  std::vector<SourceLocation>
      places;  // position in that file of each line of the recipe; lines beyond have none
};

struct RecipeRequest {
  std::string file;
  std::vector<PinArgument> pins;
  std::map<std::string, std::string> files;     // contents to use instead of files of these names
  bool only_files = false;                      // read nothing else from the disk
  std::map<std::string, RecipeOrigin> origins;  // origins of `files`, kept among the sources
  bool trace = false;                           // show Lua frames with errors
  bool quiet = false;                           // print nothing
  bool lint = false;                            // also warn about locals that are never read
  bool needs_files = false;                     // files that a run reads and that do not exist are problems
  int64_t num_ranks = 0;  // number of ranks that will run it, whose limits are checked; 0: unknown
};

struct ResolvedRecipe {
  TrainConfig config;
  std::string name;
  Json tree;  // every key, in the form of config_to_json
  std::string hash;
  std::string lua;  // a recipe that gives the same tree
  Json history;     // path -> [{by, at, value, shadowed}]; "env.NAME" for what t.env read, "hub.NAME" for
                    // commits, "source.FILE" for hashes
  std::map<std::string, std::string> sources;
  ProblemList warnings = Json::array();  // already printed
  std::shared_ptr<LuaState> state;  // state that holds the recipe's functions; null when they are elsewhere
};

/// Returns the option made_from of tycho.session's load: the origin of each line of imported files.
Json origins_json(const std::map<std::string, RecipeOrigin>& origins);

/// Returns the options of tycho.session's load and open.
Json recipe_request_json(const RecipeRequest& request);

/// Runs a recipe and its checks. Throws Error: kRecipe with the whole report of its problems, kInterrupted
/// after LuaWatch::interrupt().
ResolvedRecipe resolve_recipe(const RecipeRequest& request);

/// Returns a request that resolves a recipe again without reading files from the disk.
RecipeRequest own_request(const ResolvedRecipe& recipe);
/// Resolves the recipe again in a Lua state of its own, so that code in one state cannot affect the other.
/// Reads no files and prints nothing.
ResolvedRecipe in_own_state(const ResolvedRecipe& recipe);

/// The result of checking one recipe, for `tycho test`.
struct RecipeVerdict {
  std::optional<ResolvedRecipe> recipe;  // nullopt when there are problems
  std::string report;                    // text of the problems; "" without
  ProblemList problems = Json::array();  // problems of the report
  std::string kind =
      "right";  // "right" or "wrong"; or when nothing else is wrong: "open" (required keys are not set),
                // "absent" (files that it reads do not exist), "no recipe" (the file returns none)
  std::vector<std::string> open;   // required keys that are not set
  bool open_on_purpose = false;    // one of them is t.required in a file
  std::vector<std::string> files;  // files that it was read from
};
/// Checks a recipe in `state`. A state in which earlier recipes ran saves loading the library; it belongs to
/// one thread.
RecipeVerdict try_recipe(const RecipeRequest& request,
                         const std::shared_ptr<LuaState>& state = std::make_shared<LuaState>(),
                         const LuaLimits& limits = {});

/// Returns a resolved recipe from the result of tycho.session for a finished recipe: tree, name, lua,
/// history, sources, environment, schedule. See RecipeRequest for `origins`.
ResolvedRecipe to_resolved(const Json& result, const std::map<std::string, RecipeOrigin>& origins);

/// Throws Error (kRecipe) that names a key, below `path`, whose value contains a registered secret: a run
/// keeps its whole recipe, in files and in every checkpoint, and a sweep its points.
void refuse_secrets(const Json& part, const std::string& path = "");

/// A problem at a position in a file; the file is "" for an argument.
struct SourceProblem {
  std::string file;
  SourceLocation place;
  std::string message;
};
ProblemList problem_list(const std::vector<SourceProblem>& problems);
/// Returns the problems sorted, each with its source line and a caret, in the form of a recipe's report.
std::string problem_report(const std::vector<SourceProblem>& problems,
                           const std::map<std::string, std::string>& sources);

/// Returns {"name", "hash", "sources": {file: hash}}, which ranks and run folders compare. The hash is
/// config_hash of the tree.
Json recipe_identity(const ResolvedRecipe& recipe);

/// Reads in-context tasks from a Lua file that returns a table like that of the key icl. Throws Error
/// (kRecipe) with the whole report of its problems.
IclConfig read_tasks_file(const std::string& file, bool trace);

/// Returns the output of `tycho config`, as "text" and "rows". Throws like resolve_recipe, and kUsage for an
/// unknown key.
struct ConfigQuery {
  RecipeRequest recipe;  // file "" for the schema alone
  std::string under;     // only this path and the keys below it
  std::string why;       // the history of this path
  bool changed = false;  // only values that are not defaults
};
Json show_config(const ConfigQuery& query);

/// Returns completions of the last of `words`, the arguments of a verb that takes overrides, as whole words.
/// The kinds that a recipe among them defines count too.
std::vector<std::string> complete_override(const std::vector<std::string>& words);

/// Returns the page of all keys, in Markdown, with the kinds that these recipes or modules define.
std::string keys_page(const std::vector<std::string>& recipes = {});

/// Returns stubs for editors: path below the project's folder -> text. `classes` are the objects of a run,
/// from describe() of bindings/run/class.h. `recipes`: recipes and modules whose kinds are included.
std::map<std::string, std::string> make_stubs(const Json& classes,
                                              const std::vector<std::string>& recipes = {});

/// Runs the checks of a project, each a file that returns a function. Returns [{subject, level, text,
/// advice}].
Json run_doctor_files(const std::vector<std::string>& files);

/// Runs Lua spec files with lua/tycho/spec.lua. Failures are printed to stderr.
struct SpecResult {
  int passed = 0, failed = 0;
  Json failures = Json::array();  // [{file, name, message}]
};
/// `prepare` registers the modules of higher layers in the specs' state.
SpecResult run_specs(const std::vector<std::string>& files, bool trace,
                     const std::function<void(lua_State*)>& prepare);

}  // namespace tycho
