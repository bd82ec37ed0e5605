// The REPL: entries of a terminal or a script, one after the other.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "bindings/define/recipe.h"
#include "trainer/session/session.h"

namespace tycho {

struct ReplOptions {
  RecipeRequest recipe;              // file "" for none
  std::vector<std::string> argv;     // what a run folder remembers as its command, from "tycho" on
  std::vector<std::string> entries;  // run these and end; empty: read standard input
  bool keep_history = true;
};

/// Reads entries until ^D. A terminal is asked with a prompt; a script ends at its first error. Returns 0, or
/// the exit code of the entry that ended it. `opened`: a run to look at, which `trainer` stands for from the
/// beginning.
int run_repl_loop(const ReplOptions& options, std::unique_ptr<TrainingSession> opened = nullptr);

}  // namespace tycho
