// tycho repl: a prompt for a recipe and its run.
#include "host/repl/repl.h"
#include "host/recipe_words.h"

#include "host/verb.h"

namespace tycho {

const VerbSpec kReplSpec = {
    "repl [RECIPE] [key=value ...]",
    "Opens a prompt: inspect a recipe, change it, build the run, train it step by step.",
    "  tycho repl recipes/demo.lua micro_batch=8sp\n"
    "  tycho repl recipes/demo.lua -e 'r.optimizer.lr'\n"
    "  tycho launch -n 2 repl recipes/demo.lua\n"
    "  tycho repl < script.lua",
    {{"e,eval", "Run this entry and exit; can be given several times.", "ENTRY"},
     {"json", "Read requests and write answers as lines of JSON, for editors and notebooks."},
     {"no-history", "Do not read or save the history."}}};

int run_repl(const Arguments& arguments) {
  ReplOptions options;
  options.place = find_rank_place(process_environment());
  bool has_file = false;
  for (const std::string& one : arguments.words) has_file |= !is_override(one);
  if (has_file) {
    options.recipe = recipe_request(arguments);
  } else if (!arguments.words.empty()) {
    fail(ExitCode::kUsage, "[tycho repl] {} needs a recipe: tycho repl RECIPE key=value", arguments.words[0]);
  }
  options.argv = {"tycho", "repl"};
  options.argv.insert(options.argv.end(), arguments.argv.begin(), arguments.argv.end());
  options.entries = arguments.all("eval");
  options.json = arguments.has("json");
  if (options.json && !options.entries.empty())
    fail(ExitCode::kUsage, "[tycho repl] --json reads entries from standard input: leave --eval out");
  options.keep_history = !arguments.has("no-history");
  return run_repl_loop(options);
}

}  // namespace tycho
