// tycho launch: several ranks of one run on this machine.
#include "bindings/define/recipe.h"
#include "host/launch/local_ranks.h"
#include "host/process/child_process.h"
#include "host/repl/post_mortem.h"
#include "host/signals.h"
#include "host/verb.h"
#include "trainer/rendezvous/rank_place.h"

namespace tycho {

const VerbSpec kLaunchSpec = {
    "launch -n N run RECIPE [ARGUMENT ...]\n"
    "       tycho launch -n N rerun RUN run_name=NAME [ARGUMENT ...]\n"
    "       tycho launch -n N repl [RECIPE] [ARGUMENT ...]\n"
    "       tycho launch -n N plan RECIPE --probe [ARGUMENT ...]",
    "Starts N ranks of one run on this machine; everything after the options is the command of each rank.",
    "  tycho launch -n 2 run recipes/demo.lua max_duration=20ba",
    {{"n,ranks", "Number of ranks.", "N"},
     {"grace",
      "Seconds that the other ranks have to end by themselves after one failed; the same again after "
      "SIGTERM.",
      "SECONDS", "30"}},
    /*passes_on=*/true};

namespace {

constexpr int64_t kMaxRanks = 1024;

const Verb& launched_verb(const Arguments& arguments) {
  const std::string& name = word(arguments, 0, "a command for every rank, such as run recipes/demo.lua");
  for (const Verb& verb : all_verbs())
    if (name == verb.name &&
        (verb.run == run_run || verb.run == run_rerun || verb.run == run_repl || verb.run == run_plan))
      return verb;
  if (name.ends_with(".lua") || name.ends_with(".yaml") || name.ends_with(".toml"))
    fail(ExitCode::kUsage, "[tycho launch] wanted a verb before the recipe, given {0}; write  run {0}", name);
  fail(ExitCode::kUsage,
       "[tycho launch] wanted run, rerun, repl or plan --probe after the options, given \"{}\"; other verbs "
       "run on one rank",
       name);
}

/// Ranks that start ranks would all write to the same run folder.
void refuse_to_be_a_rank() {
  const RankPlace place = find_rank_place(process_environment());
  if (place.num_ranks == 1) return;
  fail(ExitCode::kTopology,
       "[tycho launch] this process is already rank {} of {} by {}: start tycho run directly with one task "
       "per rank, or set TYCHO_NUM_RANKS=1 to start ranks on this machine only",
       place.rank, place.num_ranks, place.source);
}

/// What is wrong with the command is said once, here, and not by every rank. False when only help was asked
/// for. `is_prompt`: it opens one, or may.
bool check_command(const Verb& verb, const std::vector<std::string>& argv, bool& is_prompt) {
  is_prompt = verb.run == run_repl;
  bool help = false;
  const Arguments command = parse_arguments(verb, argv, help);
  if (help) return false;
  if (verb.run == run_rerun || verb.run == run_repl) return true;
  if (verb.run == run_plan && !command.has("probe"))
    fail(ExitCode::kUsage,
         "[tycho launch] plan starts ranks only to measure them: add --probe, or use --ranks to plan without "
         "starting ranks");
  if (verb.run == run_run) is_prompt = wants_to_look(command.text("on-error"), /*rank=*/0);
  const InterruptLua interruptible;
  resolve_recipe(recipe_request(command));
  return true;
}

}  // namespace

int run_launch(const Arguments& arguments) {
  const Verb& verb = launched_verb(arguments);
  LocalRanks ranks;
  ranks.num_ranks = static_cast<int>(arguments.integer("ranks", 1, kMaxRanks));
  ranks.grace = std::chrono::duration<double>(arguments.number("grace", 0, 1e6));
  if (!check_command(verb, {arguments.words.begin() + 1, arguments.words.end()}, ranks.is_prompt)) return 0;
  refuse_to_be_a_rank();
  ranks.argv = {this_program()};
  ranks.argv.insert(ranks.argv.end(), arguments.words.begin(), arguments.words.end());
  return run_local_ranks(ranks);
}

}  // namespace tycho
