// The REPL: entries of a terminal or a script, one after the other.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "bindings/define/recipe.h"
#include "trainer/rendezvous/rank_place.h"
#include "trainer/session/session.h"

namespace tycho {

class InStep;
class LuaCallbacks;

struct ReplOptions {
  RecipeRequest recipe;              // file "" for none
  std::vector<std::string> argv;     // what a run folder remembers as its command, from "tycho" on
  std::vector<std::string> entries;  // run these and end; empty: read standard input
  bool keep_history = true;
  bool json = false;  // requests and answers are lines of JSON (json_lines.h)
  RankPlace place;    // of this process
};

/// Reads entries until ^D or the end of the input. A terminal is asked with a prompt; a script ends at its
/// first error. Of several ranks rank 0 reads, and all evaluate. Returns 0, or the exit code of the entry
/// that ended it.
int run_repl_loop(const ReplOptions& options);

/// A run that failed, and the code that it called.
struct FailedRun {
  std::unique_ptr<TrainingSession> session;
  LuaCallbacks& callbacks;
  std::string message;
  InStep* ranks = nullptr;  // those that had the run; null for one
};
/// The same over a run to look at: `trainer` and the rest are there from the beginning, and so are the frames
/// of the callback that failed, if one did.
int run_repl_loop(const ReplOptions& options, FailedRun failed);

}  // namespace tycho
