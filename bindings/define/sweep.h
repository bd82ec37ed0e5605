// Sweeps as the host sees them: a file or arguments in, a config, trials and rules out. Torch-free.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bindings/define/lua_util.h"
#include "bindings/define/recipe.h"
#include "trainer/base/json.h"
#include "trainer/sweep/config.h"
#include "trainer/sweep/definition.h"

namespace tycho {

struct SweepRequest {
  std::string file;  // of the sweep; of the recipe when the arguments contain the space
  std::vector<PinArgument> arguments;
  bool of_recipe = false;
  std::string name;                             // name for a sweep of a recipe
  int64_t trials = 0;                           // trials of a sweep of a recipe; 0 for the default
  std::map<std::string, std::string> files;     // contents to use instead of files of these names
  std::map<std::string, RecipeOrigin> origins;  // origins of `files`, kept among the sources
  bool trace = false;
};

/// A sweep whose Lua functions can be called during its lifetime. Owned by one thread.
class SweepProgram {
 public:
  /// Runs the file and its checks. Throws Error: kRecipe with the whole report of its problems, kInterrupted
  /// after LuaWatch::interrupt().
  explicit SweepProgram(const SweepRequest& request);
  ~SweepProgram();

  const std::string& name() const { return name_; }
  const SweepConfig& config() const { return config_; }
  const Json& tree() const { return tree_; }
  const std::map<std::string, std::string>& sources() const { return sources_; }
  /// Returns the points of the space; ids are not filled in.
  const std::vector<TrialPlan>& trials() const { return trials_; }

  /// Returns the first rule, a function of the sweep, that ends a trial with these numbers
  /// (RunProgress::newest), or "". Throws Error (kRecipe) when a rule raises an error.
  std::string broken_rule(const Json& numbers) const;

 private:
  Json ask(const char* function, const Json& request) const;

  std::unique_ptr<LuaState> state_;
  std::string name_;
  SweepConfig config_;
  Json tree_;
  std::map<std::string, std::string> sources_;
  std::vector<TrialPlan> trials_;
  bool trace_ = false;
};

/// Returns true for the text of a file that makes a sweep and not a recipe.
bool is_sweep_text(const std::string& text);

}  // namespace tycho
