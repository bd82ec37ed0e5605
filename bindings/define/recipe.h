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
#include "trainer/config/train_config.h"
#include "trainer/icl/config.h"

namespace tycho {

/// What is wrong with a recipe, or what it was warned of, as data: [{file, line, column or argument, path,
/// message, expected, got, suggestion}], as far as each is known.
using ProblemList = Json;

/// A recipe that cannot run: the report for people, and its problems.
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
  std::vector<SourcePlace> places;  // of each line of the recipe in that file; none at the lines beyond
};

struct RecipeRequest {
  std::string file;
  std::vector<PinArgument> pins;
  std::map<std::string, std::string> files;     // texts that stand for files of these names
  bool only_files = false;                      // read nothing else from the disk
  std::map<std::string, RecipeOrigin> origins;  // what `files` was made from: kept among the sources
  bool trace = false;                           // show Lua frames with errors
  bool quiet = false;                           // print nothing
  bool lint = false;                            // warn of locals that nothing reads, too
  int64_t num_ranks = 0;  // that will run it: what does not fit them is a problem of its keys; 0: not known
};

struct ResolvedRecipe {
  TrainConfig config;
  std::string name;
  Json tree;  // every key, as config_to_json writes it
  std::string hash;
  std::string lua;  // a recipe that gives the same tree
  Json history;     // path -> [{by, at, value, shadowed}]; "env.NAME" for what t.env read, "source.FILE" for
                    // hashes
  std::map<std::string, std::string> sources;
  ProblemList warnings = Json::array();  // they were printed, too
  std::shared_ptr<LuaState> state;       // where the recipe's functions live; null when they live elsewhere
};

/// The option made_from of tycho.session's load: which lines of which file the lines of others were made of.
Json origins_json(const std::map<std::string, RecipeOrigin>& origins);

/// The options of tycho.session's load and open.
Json recipe_request_json(const RecipeRequest& request);

/// Runs a recipe and its checks. Throws Error: kRecipe with the whole report when anything is wrong,
/// kInterrupted after LuaWatch::interrupt().
ResolvedRecipe resolve_recipe(const RecipeRequest& request);

/// What resolves a recipe once more without a file of the disk.
RecipeRequest own_request(const ResolvedRecipe& recipe);
/// The recipe once more, in a Lua state of its own: code that runs in one cannot harm the other. Reads no
/// files and prints nothing.
ResolvedRecipe in_own_state(const ResolvedRecipe& recipe);

/// The result of checking one recipe, for `tycho test`.
struct RecipeVerdict {
  std::optional<ResolvedRecipe> recipe;  // none when anything is wrong
  std::string report;                    // then
  ProblemList problems = Json::array();  // those of the report
  std::string kind = "right";     // or "wrong"; when nothing else is: "open" (required keys are not set),
                                  // "absent" (files it reads are not here), "no recipe" (the file gives none)
  std::vector<std::string> open;  // those keys
  bool open_on_purpose = false;   // one of them is t.required in a file
  std::vector<std::string> files;  // that it was read from
};
/// `state`: where it runs; one that earlier recipes ran in saves loading the library, and is for one thread.
RecipeVerdict try_recipe(const RecipeRequest& request,
                         const std::shared_ptr<LuaState>& state = std::make_shared<LuaState>(),
                         const LuaLimits& limits = {});

/// A resolved recipe from what tycho.session returns for a finished recipe: tree, name, lua, history,
/// sources, environment, schedule. `origins` as in RecipeRequest.
ResolvedRecipe to_resolved(const Json& result, const std::map<std::string, RecipeOrigin>& origins);

/// A run keeps its whole recipe, in files and in every checkpoint, and a sweep its points. Throws Error
/// (kRecipe) naming the key, `path` and on, whose value holds a registered secret.
void refuse_secrets(const Json& part, const std::string& path = "");

/// What is wrong at a place of a file; the file is "" for an argument.
struct SourceProblem {
  std::string file;
  SourcePlace place;
  std::string message;
};
/// The problems as data.
ProblemList problem_list(const std::vector<SourceProblem>& problems);
/// Each with its line of the source and a caret, sorted, as recipes are reported.
std::string problem_report(const std::vector<SourceProblem>& problems,
                           const std::map<std::string, std::string>& sources);

/// {"name", "hash", "sources": {file: hash}}: what ranks and run folders compare. The hash is config_hash of
/// the tree.
Json recipe_identity(const ResolvedRecipe& recipe);

/// In-context tasks from a Lua file that returns a table like that of the key icl. Throws Error (kRecipe)
/// with the whole report when anything is wrong.
IclConfig read_tasks_file(const std::string& file, bool trace);

/// What `tycho config` shows. The result has "text" and "rows". Throws like resolve_recipe, kUsage for a key
/// that is not there.
struct ConfigQuery {
  RecipeRequest recipe;  // file "" for the schema alone
  std::string under;     // only this path and below
  std::string why;       // the history of this path
  bool changed = false;  // only what is not a default
};
Json show_config(const ConfigQuery& query);

/// Completions of the last of `words`, the arguments of a verb that takes overrides, as whole words.
std::vector<std::string> complete_override(const std::vector<std::string>& words);

/// The page of all keys, in Markdown.
std::string keys_page();

/// Stubs for editors: file name -> text, below the folder that they are written to. `classes`: the objects of
/// a run, as describe() of bindings/run/class.h gives them.
std::map<std::string, std::string> make_stubs(const Json& classes);

/// Runs the checks of a project, each a file that returns a function: [{subject, level, text, advice}].
Json run_doctor_files(const std::vector<std::string>& files);

/// Runs Lua spec files with lua/tycho/spec.lua. Failures are printed to stderr.
struct SpecResult {
  int passed = 0, failed = 0;
  Json failures = Json::array();  // [{file, name, message}]
};
/// `prepare` gives the state of the specs what lies above this layer.
SpecResult run_specs(const std::vector<std::string>& files, bool trace,
                     const std::function<void(lua_State*)>& prepare);

}  // namespace tycho
