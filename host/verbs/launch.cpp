// tycho launch: several ranks of one run on this machine.
#include <map>
#include <optional>
#include <string>

#include "bindings/define/recipe.h"
#include "host/bench/runs.h"
#include "host/launch/local_ranks.h"
#include "host/process/child_process.h"
#include "host/recipe_words.h"
#include "host/repl/post_mortem.h"
#include "host/signals.h"
#include "host/standard_streams.h"
#include "host/start/rerun_request.h"
#include "host/start/start_run.h"
#include "host/verb.h"
#include "trainer/plan/plan.h"
#include "trainer/rendezvous/rank_info.h"

namespace tycho {

const VerbSpec kLaunchSpec = {
    "launch -n N run RECIPE [ARGUMENT ...]\n"
    "       tycho launch -n N rerun RUN run_name=NAME [ARGUMENT ...]\n"
    "       tycho launch -n N repl [RECIPE] [ARGUMENT ...]\n"
    "       tycho launch -n N plan RECIPE --probe [ARGUMENT ...]\n"
    "       tycho launch -n N bench comm [ARGUMENT ...]",
    "Starts N ranks of one run on this machine; everything after the options is the command of each rank.",
    "  tycho launch -n 2 run recipes/demo.lua max_duration=20ba\n"
    "  TYCHO_ADDRESS=node-a TYCHO_PORT=29500 TYCHO_TOKEN=$SECRET tycho launch -n 8 --nodes 2 --node 1 run "
    "recipes/mpt-1b.lua",
    {{"n,ranks", "Number of ranks of this machine.", "N"},
     {"nodes",
      "Machines that start ranks of the run, each with this command. TYCHO_ADDRESS and TYCHO_PORT (or "
      "MASTER_ADDR and MASTER_PORT) say where machine 0 is; TYCHO_TOKEN is a secret that all share.",
      "N", "1"},
     {"node", "Which of the machines this is, from 0.", "I", "0"},
     {"grace",
      "Seconds that ranks have to end after a signal, or after one of them ended or was lost; half-way they "
      "get SIGTERM. A rank that saves has ten minutes.",
      "SECONDS", "30"}},
    /*passes_on=*/true};

namespace {

constexpr int64_t kMaxRanks = 1024;
constexpr int64_t kMaxNodes = 1 << 16;

const Verb& launched_verb(const Arguments& arguments) {
  const std::string& name = word(arguments, 0, "a command for every rank, such as run recipes/demo.lua");
  for (const Verb& verb : all_verbs())
    if (name == verb.name && (verb.run == run_run || verb.run == run_rerun || verb.run == run_repl ||
                              verb.run == run_plan || verb.run == run_bench))
      return verb;
  if (name.ends_with(".lua") || name.ends_with(".yaml") || name.ends_with(".toml"))
    fail(ExitCode::kUsage, "[tycho launch] expected a verb before the recipe, got {0}; write  run {0}", name);
  fail(ExitCode::kUsage,
       "[tycho launch] expected run, rerun, repl, plan --probe or bench comm after the options, got \"{}\"; "
       "other verbs "
       "run on one rank",
       name);
}

/// Refuses to launch from a rank: ranks that start ranks would all write to the same run folder.
void refuse_to_be_a_rank() {
  const RankInfo place = find_rank_place(process_environment());
  if (place.num_ranks == 1) return;
  fail(ExitCode::kTopology,
       "[tycho launch] this process is already rank {} of {} by {}: start tycho run directly with one task "
       "per rank, or set TYCHO_NUM_RANKS=1 to start ranks on this machine only",
       place.rank, place.num_ranks, place.source);
}

/// Sets where the ranks of several machines meet: TYCHO_ADDRESS and TYCHO_PORT, or the variables of
/// Kubernetes and torchrun for them, and the token.
void find_meeting_point(LocalRanks& ranks) {
  const Environment variable = process_environment();
  const auto find = [&](const char* name, const char* other_name) {
    std::string value = variable(name).value_or("");
    return value.empty() && *other_name != '\0' ? variable(other_name).value_or("") : value;
  };
  ranks.address = find("TYCHO_ADDRESS", "MASTER_ADDR");
  ranks.port = find("TYCHO_PORT", "MASTER_PORT");
  ranks.token = find("TYCHO_TOKEN", "");
  const auto require = [&](const std::string& value, const char* what) {
    if (value.empty()) fail(ExitCode::kTopology, "[tycho launch] --nodes {} needs {}", ranks.num_nodes, what);
  };
  require(ranks.address, "TYCHO_ADDRESS or MASTER_ADDR: the host name of machine 0");
  require(ranks.port, "TYCHO_PORT or MASTER_PORT: a free port of machine 0, the same on all machines");
  require(ranks.token, "TYCHO_TOKEN: a secret, the same on all machines; `openssl rand -hex 16` makes one");
  // What is wrong with a value is said once, here, and not by every rank.
  const std::map<std::string, std::string> of_a_rank = {{"TYCHO_RANK", "0"},
                                                        {"TYCHO_NUM_RANKS", "2"},
                                                        {"TYCHO_LOCAL_RANK", "0"},
                                                        {"TYCHO_NUM_LOCAL_RANKS", "1"},
                                                        {"TYCHO_ADDRESS", ranks.address},
                                                        {"TYCHO_PORT", ranks.port},
                                                        {"TYCHO_TOKEN", ranks.token}};
  find_rank_place([&](const std::string& name) -> std::optional<std::string> {
    const auto found = of_a_rank.find(name);
    return found == of_a_rank.end() ? std::nullopt : std::optional(found->second);
  });
}

/// Checks the command here, so that an error is reported once and not by every rank. Returns false when only
/// help was asked for. Sets `is_prompt` when the command opens a prompt, or may.
bool check_command(const Verb& verb, const std::vector<std::string>& argv, int64_t num_ranks,
                   bool& is_prompt) {
  is_prompt = verb.run == run_repl;
  bool help = false;
  const Arguments command = parse_arguments(verb, argv, help);
  if (help) return false;
  if (verb.run == run_repl) return true;  // rank 0 alone speaks: a prompt may mend its recipe
  const bool is_bench = verb.run == run_bench;
  if (is_bench) {
    const std::string what = command.words.empty() ? "" : command.words[0];
    if (what == "comm") return true;
    if (what != "step")
      fail(ExitCode::kUsage, "[tycho launch] only `bench comm` and `bench step` run on several ranks");
  }
  if (verb.run == run_plan && !command.has("probe"))
    fail(ExitCode::kUsage,
         "[tycho launch] plan starts ranks only to measure them: add --probe, or use --ranks to plan without "
         "starting ranks");
  if (verb.run == run_run) is_prompt = wants_to_look(command.text("on-error"), /*rank=*/0);
  const InterruptLua interruptible;
  RecipeRequest request = verb.run == run_rerun
                              ? rerun_request(command, num_ranks).recipe_request()
                              : recipe_request(is_bench ? without_subverb(command) : command);
  resolve_recipe(request);
  request.num_ranks = num_ranks;
  request.quiet = true;
  RecipeVerdict verdict = try_recipe(request);
  if (!verdict.recipe) throw RecipeError(verdict.report, std::move(verdict.problems), ExitCode::kTopology);
  // Files may still be made by what each rank runs first; samples that are there stay as they are.
  if ((verb.run == run_run || verb.run == run_rerun) && !unfit_samples(verdict.recipe->config).empty())
    require_files(*verdict.recipe, request);
  return true;
}

}  // namespace

int run_launch(const Arguments& arguments) {
  const Verb& verb = launched_verb(arguments);
  LocalRanks ranks;
  ranks.num_ranks = static_cast<int>(arguments.integer("ranks", 1, kMaxRanks));
  ranks.num_nodes = static_cast<int>(arguments.integer("nodes", 1, kMaxNodes));
  ranks.node = static_cast<int>(arguments.integer("node", 0, kMaxNodes));
  if (ranks.node >= ranks.num_nodes)
    fail(ExitCode::kUsage, "[tycho launch] --node expected a number from 0 to {} (--nodes {}), got {}",
         ranks.num_nodes - 1, ranks.num_nodes, ranks.node);
  ranks.grace = std::chrono::duration<double>(arguments.number("grace", 0, 1e6));
  if (!check_command(verb, {arguments.words.begin() + 1, arguments.words.end()},
                     int64_t{ranks.num_ranks} * ranks.num_nodes, ranks.is_prompt))
    return 0;
  if (ranks.num_nodes > 1)
    find_meeting_point(ranks);
  else
    refuse_to_be_a_rank();
  never_wait_for_readers();
  ranks.argv = {this_program()};
  ranks.argv.insert(ranks.argv.end(), arguments.words.begin(), arguments.words.end());
  return run_local_ranks(ranks);
}

}  // namespace tycho
