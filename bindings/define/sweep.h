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
  std::string file;  // of the sweep; of the recipe when the space stands in the arguments
  std::vector<PinArgument> arguments;
  bool of_recipe = false;
  std::string name;                             // of a sweep of a recipe
  int64_t trials = 0;                           // of a sweep of a recipe; 0 for the default
  std::map<std::string, std::string> files;     // texts that stand for files of these names
  std::map<std::string, RecipeOrigin> origins;  // what `files` was made from: kept among the sources
  bool trace = false;
};

/// A sweep whose Lua functions can be called as long as this lives. Owned by one thread.
class SweepProgram {
 public:
  /// Runs the file and its checks. Throws Error: kRecipe with the whole report when anything is wrong,
  /// kInterrupted after LuaWatch::interrupt().
  explicit SweepProgram(const SweepRequest& request);
  ~SweepProgram();

  const std::string& name() const { return name_; }
  const SweepConfig& config() const { return config_; }
  const Json& tree() const { return tree_; }
  const std::map<std::string, std::string>& sources() const { return sources_; }
  /// Points of the space; ids are not filled in.
  const std::vector<TrialPlan>& trials() const { return trials_; }

  /// The first rule written as a function that ends a trial with these numbers (RunProgress::newest), or "".
  /// Throws Error (kRecipe) for a rule that raises.
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

/// True for the text of a file that makes a sweep and not a recipe.
bool is_sweep_text(const std::string& text);

}  // namespace tycho
