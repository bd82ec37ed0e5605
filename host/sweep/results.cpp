// Prints sweeps.
#include "host/sweep/results.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "host/standard_streams.h"
#include "host/sweep/best.h"
#include "host/text_table.h"
#include "host/watch_page.h"
#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/base/regular_file.h"
#include "trainer/plan/plan.h"
#include "trainer/sweep/progress.h"
#include "trainer/sweep/report.h"
#include "trainer/sweep/search.h"
#include "trainer/sweep/table.h"

namespace tycho {
namespace {

constexpr size_t kShownTrials = 20, kMeasuredTrials = 32;

using Rows = std::vector<std::vector<std::string>>;

/// Returns the board with the newest numbers of running trials.
Board live_board(const SweepFolder& folder) {
  Board board = folder.board();
  for (const Trial& trial : folder.board().trials()) {
    if (!trial.is_working()) continue;
    RunProgress progress(folder.run_dir(trial));
    if (progress.update())
      board.show_progress(trial.plan.id, rung_result(progress, board.definition().config.metric.name));
  }
  return board;
}

Rows first_rows(Rows rows, size_t count) {
  if (rows.size() > count + 1) rows.resize(count + 1);
  return rows;
}

struct Cost {
  double tokens = 0, flops = 0;
  double disk_bytes = 0;
  std::vector<double> rung_shares;  // of each rung, as a share of the run
};

/// Returns the length of each rung as a share of the run, for one trial.
std::vector<double> rung_shares(const SweepDefinition& definition, const TrainConfig& config,
                                const Plan& plan) {
  std::vector<double> shares;
  const auto* asha = std::get_if<AshaSearch>(&definition.config.search.value);
  if (asha == nullptr || plan.steps == 0) return shares;
  for (const Duration& rung : asha->rungs)
    shares.push_back(std::min(
        1.0, in_steps(rung, config, plan.steps, plan.num_samples) / static_cast<double>(plan.steps)));
  return shares;
}

/// Returns the cost of one whole trial, averaged over some of them.
Cost mean_cost(const SweepDefinition& definition) {
  Cost mean;
  const size_t count = std::min(definition.trials.size(), kMeasuredTrials);
  for (size_t i = 0; i < count; ++i) {
    const TrainConfig config = resolve_plan(definition, definition.trials[i]).config;
    const Plan plan = make_plan(config);
    mean.tokens += static_cast<double>(plan.tokens) / static_cast<double>(count);
    mean.flops += plan.total_flops / static_cast<double>(count);
    mean.disk_bytes += static_cast<double>(plan.disk_bytes) / static_cast<double>(count);
    mean.rung_shares = rung_shares(definition, config, plan);
  }
  return mean;
}

/// Returns the cost of a sweep in whole runs, if every rung keeps as many trials as planned.
double whole_runs(const SweepDefinition& definition, const Cost& cost) {
  auto left = static_cast<double>(definition.trials.size());
  if (cost.rung_shares.empty()) return left;
  double runs = 0, before = 0;
  for (const double share : cost.rung_shares) {
    runs += left * (share - before);
    before = share;
    left = std::max(1.0, std::floor(left / definition.config.search.as<AshaSearch>().eta));
  }
  return runs;
}

std::string rungs_text(const AshaSearch& asha, size_t num_trials) {
  std::string text;
  auto left = static_cast<double>(num_trials);
  for (size_t i = 0; i < asha.rungs.size(); ++i) {
    text += fmt::format("  rung {}  to {:>8}  about {} trials\n", i, asha.rungs[i].str(),
                        static_cast<int64_t>(std::max(1.0, left)));
    left = std::floor(left / asha.eta);
  }
  return text;
}

}  // namespace

void print_sweep_plan(const PreparedSweep& sweep) {
  const SweepDefinition& definition = sweep.definition;
  std::vector<std::string> keys;
  for (const TrialPlan& trial : definition.trials)
    for (const auto& [key, value] : trial.values)
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  Rows rows = {{"trial"}};
  rows[0].insert(rows[0].end(), keys.begin(), keys.end());
  for (const TrialPlan& trial : definition.trials) {
    if (rows.size() > kShownTrials) break;
    std::vector<std::string>& row = rows.emplace_back(1, std::to_string(rows.size()));
    for (const std::string& key : keys) row.push_back(trial.values.contains(key) ? trial.values.at(key) : "");
  }
  const size_t n = definition.trials.size();
  fmt::print("sweep {} of {}: {} trials\n{}", definition.name, definition.recipe, n, text_table(rows));
  if (n > kShownTrials) fmt::print("... and {} more\n", n - kShownTrials);
  if (const auto* asha = std::get_if<AshaSearch>(&definition.config.search.value))
    fmt::print("every trial starts; rungs decide which continue:\n{}", rungs_text(*asha, n));
  const Cost cost = mean_cost(definition);
  const double runs = whole_runs(definition, cost);
  fmt::print("one complete trial: {:.4g} tokens, {:.3g} FLOP, {} of disk\n", cost.tokens, cost.flops,
             human_bytes(cost.disk_bytes));
  fmt::print("the sweep: {:.4g} tokens, {:.3g} FLOP, {} of disk{}\n", cost.tokens * runs, cost.flops * runs,
             human_bytes(cost.disk_bytes * static_cast<double>(n)),
             cost.rung_shares.empty() ? "" : fmt::format(", about {:.3g} whole runs", runs));
}

void print_sweep_end(const SweepFolder& folder) {
  const std::string& name = folder.board().definition().name;
  fmt::print("\n{}", text_table(first_rows(sweep_table(folder.board(), {}), kShownTrials)));
  fmt::print("{}\n", sweep_summary(folder.board()));
  if (const std::string verdict = verdict_on_winner(folder.board()); !verdict.empty())
    fmt::print("{}\n", verdict);
  fmt::print("`tycho sweep best {}` gives the recipe, `tycho sweep report {}` a page\n", name, name);
}

int sweep_table_verb(const Arguments& arguments) {
  SweepFolder folder = open_sweep(word(arguments, 1, "the name of a sweep"));
  no_more_words(arguments, 2);
  folder.show_lost_trials();
  const Board board = live_board(folder);
  if (arguments.has("json")) {
    fmt::print("{}\n", sweep_json(board).dump(2));
    return 0;
  }
  TableOptions options;
  if (arguments.has("sort")) options.sort = arguments.text("sort");
  if (arguments.has("cols")) options.columns = arguments.list("cols");
  const Rows rows = sweep_table(board, options);
  if (arguments.has("csv")) {
    print_exact_text();
    fmt::print("{}", csv_text(rows));
  } else if (arguments.has("md")) {
    fmt::print("{}", markdown_table(rows));
  } else {
    fmt::print("{}{}\n", text_table(rows), sweep_summary(board));
    if (folder.damaged_lines() > 0)
      fmt::print("{} lines of the ledger are damaged and were skipped\n", folder.damaged_lines());
  }
  return 0;
}

int sweep_best_verb(const Arguments& arguments) {
  const SweepFolder folder = open_sweep(word(arguments, 1, "the name of a sweep"));
  no_more_words(arguments, 2);
  const std::string file =
      std::filesystem::absolute(arguments.has("out") ? arguments.text("out") : folder.dir() + "/best.lua")
          .string();
  const BestTrial best = best_trial(folder);
  write_typed_file(real_files(), file, best.lua);
  const std::string& metric = folder.board().definition().config.metric.name;
  if (arguments.has("json")) {
    Json changes = Json::object();
    for (const ChangedKey& change : best.changes)
      changes[change.key] = {{"recipe", change.recipe_value}, {"trial", change.trial_value}};
    fmt::print("{}\n", Json({{"trial", best.trial->number},
                             {"id", best.trial->plan.id},
                             {metric, *best.trial->last.value},
                             {"changes", changes},
                             {"command", best.command},
                             {"file", file}})
                           .dump(2));
    return 0;
  }
  fmt::print("trial {} ({}): {} {:.6g} at step {}\n\n", best.trial->number, best.trial->plan.id, metric,
             *best.trial->last.value, best.trial->last.step);
  Rows rows = {{"key", "recipe", "trial"}};
  for (const ChangedKey& change : best.changes)
    rows.push_back(
        {change.key, change.recipe_value.empty() ? "(open)" : change.recipe_value, change.trial_value});
  fmt::print("{}\n", text_table(rows));
  if (const std::string verdict = verdict_on_winner(folder.board()); !verdict.empty())
    fmt::print("{}\n\n", verdict);
  fmt::print("the same run again:\n  {}\n{}: {}\n", best.command, file,
             best.extends ? "a recipe that extends this one" : "a recipe with every key as in the trial");
  return 0;
}

namespace {

/// Returns a text that changes with what a report of the sweep shows.
std::string state_of(const std::string& name) {
  SweepFolder folder = open_sweep(name);
  folder.show_lost_trials();
  const auto size_of = [](const std::string& path) {
    std::error_code absent;
    return std::filesystem::file_size(path, absent);
  };
  std::string state = fmt::format("{}", size_of(folder.dir() + "/ledger.jsonl"));
  for (const Trial& trial : folder.board().trials()) {
    const std::string run_dir = folder.run_dir(trial);
    state += fmt::format(" {} {} {}", state_name(trial.state), size_of(run_dir + "/metrics.jsonl"),
                         size_of(run_dir + "/events.jsonl"));
  }
  return state;
}

}  // namespace

int sweep_report_verb(const Arguments& arguments) {
  const std::string name = word(arguments, 1, "the name of a sweep");
  no_more_words(arguments, 2);
  const std::string base = arguments.has("out") ? arguments.text("out") : open_sweep(name).dir() + "/report";
  SweepRuns runs;
  const auto write = [&](bool watched) {
    SweepFolder folder = open_sweep(name);
    folder.show_lost_trials();
    const ReportPages made = sweep_report(folder, runs, {.watched = watched, .stamp = page_stamp()});
    write_file_atomically(real_files(), base + ".html", made.html);
    write_file_atomically(real_files(), base + ".md", made.markdown);
  };
  if (arguments.has("watch"))
    return watch_page(
        base + ".html", [&] { return state_of(name); }, write);
  write(false);
  fmt::print("{}.html\n{}.md\n", base, base);
  return 0;
}

}  // namespace tycho
