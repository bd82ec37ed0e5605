// tycho sweep: runs a sweep and shows its results.
#include <fmt/ranges.h>

#include <filesystem>

#include "host/machine.h"
#include "host/process/child_process.h"
#include "host/signals.h"
#include "host/standard_streams.h"
#include "host/sweep/results.h"
#include "host/sweep/slot.h"
#include "host/sweep/slurm_array.h"
#include "host/sweep/start.h"
#include "host/sweep/worker.h"
#include "host/text_table.h"
#include "host/verb.h"
#include "trainer/base/text/shell_words.h"
#include "trainer/metrics/format.h"
#include "trainer/sweep/policy.h"
#include "trainer/sweep/table.h"

namespace tycho {

const VerbSpec kSweepSpec = {
    "sweep FILE [name=value ...]\n"
    "       tycho sweep RECIPE key=space [key=value ...]\n"
    "       tycho sweep plan FILE [name=value ...]\n"
    "       tycho sweep ls\n"
    "       tycho sweep resume|pause|table|best|report NAME\n"
    "       tycho sweep retry|drop NAME TRIAL ...\n"
    "       tycho sweep extend|set NAME key=value ...",
    "Runs a recipe with many settings and compares the results.",
    "  tycho sweep recipes/sweeps/lr.lua method=asha\n"
    "  tycho sweep recipes/mpt-125m.lua 'optimizer.lr=log(1e-4,6e-3)' model.width=512,768 -n 40\n"
    "  tycho sweep table mpt-125m --sort optimizer.lr",
    {{"n,trials", "Number of trials.", "N"},
     {"workers", "Trials at once on this machine.", "N"},
     {"name", "Name of the sweep; its folder is sweeps/NAME.", "NAME"},
     {"dry-run", "Show the trials and their costs without starting anything."},
     {"print",
      "Print what would be started, without starting it: the batch script of a Slurm array, or a command for "
      "each trial."},
     {"task", "Work as one task of a Slurm array: exit when no trial is free."},
     {"failed", "retry: all failed trials."},
     {"csv", "table: comma-separated values."},
     {"md", "table: Markdown."},
     {"sort", "table: sort by this column.", "COLUMN"},
     {"cols", "table: show these columns.", "A,B"},
     {"out", "best, report: where to write the file.", "FILE"},
     {"watch",
      "report: write it again whenever there is something new, until Ctrl-C; the open page reloads itself."},
     kJsonOption,
     kTraceOption}};

namespace {

SweepCommand command_of(const Arguments& arguments, size_t first_word) {
  SweepCommand command;
  for (size_t i = first_word; i < arguments.words.size(); ++i) {
    const std::string& one = arguments.words[i];
    if (command.file.empty() && !is_override(one))
      command.file = one;
    else
      command.arguments.push_back({arguments.numbers[i], one});
  }
  if (command.file.empty())
    fail(ExitCode::kUsage, "[tycho sweep] expected the file of a sweep or a recipe; see --help");
  if (arguments.has("name")) command.name = arguments.text("name");
  if (arguments.has("trials")) command.trials = arguments.integer("trials", 1, 1000000);
  return command;
}

WorkerOptions worker_options(const SweepConfig& config, const Arguments& arguments) {
  WorkerOptions options;
  if (const auto* workers = std::get_if<WorkersLaunch>(&config.launch.value)) options.slots = workers->count;
  if (const auto* gpus = std::get_if<LocalGpusLaunch>(&config.launch.value)) {
    const auto num_gpus = static_cast<int64_t>(visible_gpus().size());
    options.slots = std::max<int64_t>(1, num_gpus / gpus->per_trial);
    options.gpus_per_trial = num_gpus >= gpus->per_trial ? gpus->per_trial : 0;
  }
  if (const auto* array = std::get_if<SlurmArrayLaunch>(&config.launch.value))
    options.use_srun = arguments.has("task") && array->nodes * std::max<int64_t>(1, array->gpus) > 1;
  options.leave_when_idle = arguments.has("task");
  if (arguments.has("workers")) options.slots = arguments.integer("workers", 1, 1024);
  return options;
}

/// Describes the trials of a worker that was stopped. A trial that ended by itself meanwhile, for example on
/// a full disk, has lost everything since its last save.
std::string stopped_text(const Board& board) {
  std::vector<std::string> unsaved;
  for (const Trial& trial : board.trials())
    if (trial.state == TrialState::kPaused && !ends_saved(trial.exit_code))
      unsaved.push_back(fmt::format("trial {} ({})", trial.number, trial.note));
  if (unsaved.empty()) return "stopped; trials were saved and put back";
  return fmt::format(
      "stopped; not saved when it ended, and back at its last checkpoint: {}; other trials were saved "
      "and put back",
      fmt::join(unsaved, ", "));
}

int work_here(SweepFolder& folder, const SweepProgram* program, const Arguments& arguments) {
  const StopFlag& stop = stop_on_signals();
  const std::string name = folder.board().definition().name;
  const int code = work(folder, program, worker_options(folder.board().definition().config, arguments), stop);
  if (code != 0) {
    fmt::print("{}: `tycho sweep resume {}` continues\n", stopped_text(folder.board()), name);
  } else if (folder.board().is_paused()) {
    fmt::print("paused: `tycho sweep resume {}` continues\n", name);
  } else {
    print_sweep_end(folder);
  }
  return code;
}

/// Returns the array that the trials run in, or null when this machine works on them.
const SlurmArrayLaunch* array_of(const SweepConfig& config, const Arguments& arguments) {
  if (arguments.has("task") || arguments.has("workers")) return nullptr;
  return std::get_if<SlurmArrayLaunch>(&config.launch.value);
}

/// Prints a command for each of these trials (--print of a sweep that works here). Adaptive searches stop
/// some of them early.
int print_commands(const SweepDefinition& definition, const std::vector<Trial>& trials,
                   const std::string& sweep_dir) {
  for (const Trial& trial : trials) {
    std::vector<std::string> words = trial_command(definition, trial, sweep_dir);
    words.insert(words.begin(), "tycho");
    fmt::print("{}\n", shell_line(words));
  }
  return 0;
}

/// Prints the commands of a sweep that has not begun, without writing anything.
int print_new_commands(const SweepDefinition& definition) {
  std::vector<Trial> trials;
  for (const TrialPlan& plan : definition.trials)
    trials.push_back({.plan = plan, .number = static_cast<int64_t>(trials.size()) + 1});
  return print_commands(definition, trials, "sweeps/" + definition.name);
}

int print_open_commands(const SweepFolder& folder) {
  std::vector<Trial> trials;
  for (const Trial& trial : folder.board().trials())
    if (trial.is_open()) trials.push_back(trial);
  return print_commands(folder.board().definition(), trials, folder.dir());
}

void say_sweep(SweepFolder folder) {  // a copy, for what is shown and not recorded
  folder.show_lost_trials();
  fmt::print("sweep {} in {}: {}\n", folder.board().definition().name, folder.dir(),
             sweep_summary(folder.board()));
  std::fflush(stdout);
}

/// Starts the sweep on this machine or as a Slurm array.
int launch(SweepFolder& folder, const SweepProgram* program, const Arguments& arguments) {
  if (!arguments.has("print")) {
    never_wait_for_readers();
    say_sweep(folder);
  }
  const SlurmArrayLaunch* array = array_of(folder.board().definition().config, arguments);
  if (array == nullptr) return work_here(folder, program, arguments);
  const std::string script = slurm_script(folder, *array, this_program());
  if (arguments.has("print")) {
    fmt::print("{}", script);
    return 0;
  }
  const std::string job = submit(folder, script);
  folder.record({{"type", "submit"}, {"job", job}});
  const std::string& name = folder.board().definition().name;
  fmt::print("submitted as job {}; `tycho sweep table {}` shows its progress; you can log out\n", job, name);
  return 0;
}

int start(const Arguments& arguments, size_t first_word, bool only_plan) {
  PreparedSweep sweep = prepare_sweep(command_of(arguments, first_word));
  if (only_plan) {
    print_sweep_plan(sweep);
    return 0;
  }
  if (arguments.has("print") && array_of(sweep.definition.config, arguments) == nullptr)
    return print_new_commands(sweep.definition);
  SweepFolder folder = open_folder_for(sweep);
  if (folder.board().is_paused() && !arguments.has("print")) folder.record({{"type", "go"}});
  return launch(folder, sweep.program.get(), arguments);
}

int plan(const Arguments& arguments) { return start(arguments, 1, true); }

bool has_functions(const SweepConfig& config) {
  return std::any_of(config.stop.begin(), config.stop.end(),
                     [](const auto& rule) { return rule.second.template is<FunctionRule>(); });
}

int resume(const Arguments& arguments) {
  SweepFolder folder = open_sweep(word(arguments, 1, "the name of a sweep"));
  no_more_words(arguments, 2);
  folder.compact_if_due();
  check_recipe_unchanged(folder.board().definition());
  if (arguments.has("print") && array_of(folder.board().definition().config, arguments) == nullptr)
    return print_open_commands(folder);
  if (folder.board().is_paused() && !arguments.has("print")) folder.record({{"type", "go"}});
  PreparedSweep again;
  if (has_functions(folder.board().definition().config)) again = prepare_again(folder, {});
  return launch(folder, again.program.get(), arguments);
}

int pause(const Arguments& arguments) {
  SweepFolder folder = open_sweep(word(arguments, 1, "the name of a sweep"));
  no_more_words(arguments, 2);
  folder.record({{"type", "pause"}});
  fmt::print("every worker of {} saves its trials and ends; `tycho sweep resume {}` continues\n",
             folder.board().definition().name, arguments.words[1]);
  return 0;
}

/// Returns the trials that the words name, after putting back those whose worker is gone.
std::vector<const Trial*> named_trials(SweepFolder& folder, const Arguments& arguments) {
  for (const Json& end : ends_of_lost_trials(folder)) folder.record(end);
  std::vector<const Trial*> trials;
  for (size_t i = 2; i < arguments.words.size(); ++i) {
    const Trial* trial = folder.board().find(arguments.words[i]);
    if (trial == nullptr)
      fail(ExitCode::kUsage, "[sweep] no trial {} in {}; trials are 1 to {}", arguments.words[i],
           folder.board().definition().name, folder.board().trials().size());
    if (trial->is_working())
      fail(ExitCode::kUsage, "[sweep] trial {} is running: `tycho sweep pause {}` first", trial->number,
           arguments.words[1]);
    trials.push_back(trial);
  }
  return trials;
}

int tell_trials(const char* type, const std::vector<const Trial*>& trials, SweepFolder& folder,
                const char* what) {
  std::vector<std::string> ids;
  for (const Trial* trial : trials) ids.push_back(trial->plan.id);  // recording moves the board
  for (const std::string& id : ids) folder.record({{"type", type}, {"trial", id}});
  fmt::print("{} trial{} {}; {}\n", ids.size(), ids.size() == 1 ? "" : "s", what,
             sweep_summary(folder.board()));
  return 0;
}

int retry(const Arguments& arguments) {
  SweepFolder folder = open_sweep(word(arguments, 1, "the name of a sweep"));
  std::vector<const Trial*> trials = named_trials(folder, arguments);
  if (arguments.has("failed"))
    for (const Trial& trial : folder.board().trials())
      if (trial.state == TrialState::kFailed) trials.push_back(&trial);
  if (trials.empty() && !arguments.has("failed"))
    fail(ExitCode::kUsage, "[sweep retry] expected numbers of trials, or --failed");
  return tell_trials("retry", trials, folder, "to be retried");
}

int drop(const Arguments& arguments) {
  SweepFolder folder = open_sweep(word(arguments, 1, "the name of a sweep"));
  word(arguments, 2, "numbers of trials");
  return tell_trials("drop", named_trials(folder, arguments), folder, "dropped");
}

/// Runs extend and set: reads the sweep's file again with more arguments, as a new plan.
int change(const Arguments& arguments) {
  SweepFolder folder = open_sweep(word(arguments, 1, "the name of a sweep"));
  std::vector<PinArgument> more;
  for (size_t i = 2; i < arguments.words.size(); ++i) {
    const bool short_form = arguments.words[i].starts_with("trials=");
    more.push_back({arguments.numbers[i], (short_form ? "search." : "") + arguments.words[i]});
  }
  const int64_t trials = arguments.has("trials") ? arguments.integer("trials", 1, 1000000) : 0;
  if (more.empty() && trials == 0)
    fail(ExitCode::kUsage, "[sweep {}] expected key=value, such as trials=80", arguments.words[0]);
  const size_t before = folder.board().trials().size();
  const PreparedSweep sweep = prepare_again(folder, more, trials);
  if (!recipe_changes(folder.board().definition().recipe_sources, sweep.definition.recipe_sources).empty())
    check_recipe_unchanged(folder.board().definition());
  folder.set_definition(sweep.definition);
  const size_t now = folder.board().trials().size();
  fmt::print("{} new trials; {}. Running workers pick up the change; `tycho sweep resume {}` starts more\n",
             now - before, sweep_summary(folder.board()), arguments.words[1]);
  return 0;
}

/// Lists the sweeps in sweeps/ with their progress; an unreadable one with the reason.
int list(const Arguments& arguments) {
  no_more_words(arguments, 1);
  Json json = Json::array();
  std::vector<std::vector<std::string>> rows = {{"sweep", "progress"}};
  for (const std::string& name : sweep_names()) {
    std::string progress;
    try {
      const SweepFolder folder = open_sweep(name);
      progress = sweep_summary(folder.board()) + (folder.board().is_paused() ? ", paused" : "");
    } catch (const Error& error) {
      progress = error.what();
    }
    json.push_back({{"name", name}, {"folder", "sweeps/" + name}, {"progress", progress}});
    rows.push_back({printable(name, true), printable(progress, true)});
  }
  if (arguments.has("json"))
    fmt::print("{}\n", json.dump(2));
  else
    fmt::print("{}", rows.size() == 1 ? "no sweeps in sweeps/\n" : text_table(rows));
  return 0;
}

}  // namespace

int run_sweep(const Arguments& arguments) {
  static const std::vector<Subverb> kSubverbs = {{"plan", plan},
                                                 {"resume", resume},
                                                 {"pause", pause},
                                                 {"retry", retry},
                                                 {"drop", drop},
                                                 {"extend", change},
                                                 {"set", change},
                                                 {"ls", list},
                                                 {"table", sweep_table_verb},
                                                 {"best", sweep_best_verb},
                                                 {"report", sweep_report_verb}};
  for (const auto& [name, run] : kSubverbs)
    if (!arguments.words.empty() && arguments.words[0] == name) return run(arguments);
  const bool is_file = !arguments.words.empty() && std::filesystem::exists(arguments.words[0]);
  if (!is_file && !arguments.words.empty() && arguments.words[0].find_first_of("./=") == std::string::npos)
    return pick_subverb(arguments, "sweep", kSubverbs);  // says what there is
  return start(arguments, 0, arguments.has("dry-run"));
}

}  // namespace tycho
