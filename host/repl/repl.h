// The REPL: entries of a terminal or a script, one after the other.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "bindings/define/recipe.h"
#include "trainer/rendezvous/rank_info.h"
#include "trainer/session/session.h"

namespace tycho {

class InStep;
class LuaCallbacks;

struct ReplOptions {
  RecipeRequest recipe;              // file "" for none
  std::vector<std::string> argv;     // the command recorded in a run folder, from "tycho" on
  std::vector<std::string> entries;  // entries to run before ending; empty: read standard input
  bool keep_history = true;
  bool json = false;  // requests and answers are lines of JSON (json_lines.h)
  RankInfo place;     // rank of this process
};

/// Reads entries until ^D or the end of the input. Shows a prompt at a terminal; a script ends at its first
/// error. Rank 0 reads, and all ranks evaluate. Returns 0, or the exit code of the entry that ended it.
int run_repl_loop(const ReplOptions& options);

/// A run that failed, and its callbacks.
struct FailedRun {
  std::unique_ptr<TrainingSession> session;
  LuaCallbacks& callbacks;
  std::string message;
  InStep* ranks = nullptr;  // the ranks of the run; null for one rank
};
/// Same as run_repl_loop(options), for a failed run: `trainer` and the other objects exist from the
/// beginning, and so do the frames of the callback that failed, if one did.
int run_repl_loop(const ReplOptions& options, FailedRun failed);

}  // namespace tycho
