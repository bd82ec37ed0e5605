// Puts the report together.
#include "trainer/sweep/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/report/html_page.h"
#include "trainer/report/svg.h"
#include "trainer/sweep/report_plots.h"
#include "trainer/sweep/search.h"
#include "trainer/sweep/table.h"

namespace tycho {
namespace {

using Rows = std::vector<std::vector<std::string>>;
constexpr size_t kShownRows = 15;

Rows best_rows(const Board& board) {
  Rows rows = sweep_table(board, {.sort = board.definition().config.metric.name});
  if (rows.size() > kShownRows + 1) rows.resize(kShownRows + 1);
  return rows;
}

/// Returns rows for the trials that ended without reaching their end or a rung.
Rows trouble_rows(const Board& board) {
  Rows rows = {{"trial", "state", "step", "why", "pins"}};
  for (const Trial& trial : board.trials()) {
    const bool trouble = trial.state == TrialState::kFailed || trial.state == TrialState::kStopped ||
                         trial.state == TrialState::kLost || trial.state == TrialState::kDropped ||
                         trial.halved;
    if (trouble)
      rows.push_back({std::to_string(trial.number), state_name(trial.state), std::to_string(trial.last.step),
                      trial.note, pins_text(trial.plan.pins)});
  }
  return rows;
}

std::vector<PageFact> facts_of(const Board& board) {
  double wall_s = 0, tokens = 0;
  int64_t ended = 0;
  for (const Trial& trial : board.trials()) {
    wall_s += trial.wall_s;
    tokens += static_cast<double>(trial.last.tokens);
    ended += trial.is_open() ? 0 : 1;
  }
  std::vector<PageFact> facts = {{fmt::format("{} of {}", ended, board.trials().size()), "trials done"},
                                 {seconds_text(wall_s), "of all workers together"},
                                 {human_count(tokens), "tokens trained on"}};
  const std::vector<const Trial*> best = ranking(board);
  if (!best.empty()) {
    const std::string& metric = board.definition().config.metric.name;
    facts.insert(facts.begin(), {fmt::format("{:.5g}", *best[0]->last.value),
                                 fmt::format("best {}, trial {}", metric, best[0]->number)});
  }
  return facts;
}

std::string sweep_page(const SweepFolder& folder, SweepRuns& runs, const SweepPageOptions& options) {
  const Board& board = folder.board();
  const SweepDefinition& definition = board.definition();
  std::string text;
  if (const std::string verdict = verdict_on_winner(board); !verdict.empty())
    text += fmt::format("<p class=\"verdict\">{}</p>\n", escape_html(verdict));
  text += html_section("Best trials", html_table(best_rows(board)));
  text += html_section("Importance of keys", importance_bars(board));
  text += html_section("Each key against the metric", html_plots(marginal_plots(board)));
  text += html_section("All keys together", parallel_plot(board));
  text += html_section("Loss curves", curve_plots(folder, runs, options));
  text += html_section("Survival and cost", html_plots(rung_plot(board) + cost_plot(board)));
  const Rows trouble = trouble_rows(board);
  if (trouble.size() > 1) text += html_section("Failed, stopped and dropped", html_table(trouble));
  return html_page(
      "Sweep " + definition.name,
      fmt::format("{} trials of {}, compared by {}", definition.config.search.kind(), definition.recipe,
                  definition.config.metric.name),
      facts_of(board), text,
      fmt::format("Written by tycho sweep report {}. Hover over a mark to see its trial.", definition.name));
}

std::string markdown_page(const SweepFolder& folder) {
  const Board& board = folder.board();
  const SweepDefinition& definition = board.definition();
  std::string text =
      fmt::format("# Sweep {}\n\n{} trials of `{}`, compared by `{}`.\n\n", definition.name,
                  definition.config.search.kind(), definition.recipe, definition.config.metric.name);
  for (const PageFact& fact : facts_of(board)) text += fmt::format("- {}: {}\n", fact.name, fact.value);
  if (const std::string verdict = verdict_on_winner(board); !verdict.empty()) text += "\n" + verdict + "\n";
  text += "\n## Best trials\n\n" + markdown_table(best_rows(board));
  const Rows trouble = trouble_rows(board);
  if (trouble.size() > 1) text += "\n## Failed, stopped and dropped\n\n" + markdown_table(trouble);
  return text;
}

}  // namespace

ReportPages sweep_report(const SweepFolder& folder, SweepRuns& runs, const SweepPageOptions& options) {
  return {sweep_page(folder, runs, options), markdown_page(folder)};
}

}  // namespace tycho
