// Puts the report together.
#include "trainer/sweep/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/base/bytes.h"
#include "trainer/sweep/report_plots.h"
#include "trainer/sweep/search.h"
#include "trainer/sweep/svg.h"
#include "trainer/sweep/table.h"

namespace tycho {
namespace {

using Rows = std::vector<std::vector<std::string>>;
constexpr size_t kShownRows = 15;

constexpr const char* kStyle = R"(
body { font: 15px/1.5 system-ui, sans-serif; color: #1d1d1f; max-width: 1140px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem }
.facts { display: flex; flex-wrap: wrap; gap: .6rem 2.4rem; margin: 1rem 0 }
.facts div { min-width: 7rem } .facts b { display: block; font-size: 1.35rem; font-weight: 600 } .facts span { color: #666 }
.verdict { border-left: 4px solid #3b528b; padding: .4rem .9rem; background: #f4f5f9 }
table { border-collapse: collapse; font-size: .9rem; display: block; overflow-x: auto } td, th { padding: .25rem .8rem .25rem 0; text-align: left;
border-bottom: 1px solid #e6e6e6; white-space: nowrap; font-variant-numeric: tabular-nums } th { color: #666; font-weight: 500 }
.plots { display: flex; flex-wrap: wrap; gap: .5rem } svg { max-width: 100%; height: auto; font: 11px system-ui, sans-serif }
svg text { fill: #555 } svg .title { font-size: 13px; font-weight: 600; fill: #1d1d1f } svg .label { fill: #333; font-size: 12px }
svg .frame { fill: #fff; stroke: #d5d5d5 } svg .tick { stroke: #efefef } svg .axis { stroke: #555 }
svg .ground { fill: #fff; fill-opacity: .85 } svg .legend { fill: #666 } svg .beyond { stroke: #fff; stroke-width: .5px }
svg .inner { paint-order: stroke; stroke: #fff; stroke-width: 3px; stroke-linejoin: round }
footer { color: #888; margin-top: 2.5rem; font-size: .85rem }
)";

std::string html_table(const Rows& rows) {
  std::string text = "<table>\n";
  for (const auto& row : rows) {
    const char* tag = &row == &rows.front() ? "th" : "td";
    text += "<tr>";
    for (const std::string& cell : row) text += fmt::format("<{0}>{1}</{0}>", tag, escape_html(cell));
    text += "</tr>\n";
  }
  return text + "</table>\n";
}

Rows best_rows(const Board& board) {
  Rows rows = sweep_table(board, {.sort = board.definition().config.metric.name});
  if (rows.size() > kShownRows + 1) rows.resize(kShownRows + 1);
  return rows;
}

/// Trials that ended otherwise than by reaching their end or a rung.
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

struct Fact {
  std::string value, name;
};

std::vector<Fact> facts_of(const Board& board) {
  double wall_s = 0, tokens = 0;
  int64_t ended = 0;
  for (const Trial& trial : board.trials()) {
    wall_s += trial.wall_s;
    tokens += static_cast<double>(trial.last.tokens);
    ended += trial.is_open() ? 0 : 1;
  }
  std::vector<Fact> facts = {{fmt::format("{} of {}", ended, board.trials().size()), "trials done"},
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

std::string section(const std::string& title, const std::string& content) {
  return content.empty() ? "" : fmt::format("<h2>{}</h2>\n{}", escape_html(title), content);
}

std::string html_page(const SweepFolder& folder) {
  const Board& board = folder.board();
  const SweepDefinition& definition = board.definition();
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}</title><style>{1}</style></head><body>\n<h1>{0}</"
      "h1>\n<div>{2} trials of {3}, compared by {4}</div>\n<div class=\"facts\">",
      escape_html("Sweep " + definition.name), kStyle, definition.config.search.kind(),
      escape_html(definition.recipe), escape_html(definition.config.metric.name));
  for (const Fact& fact : facts_of(board))
    text +=
        fmt::format("<div><b>{}</b><span>{}</span></div>", escape_html(fact.value), escape_html(fact.name));
  text += "</div>\n";
  if (const std::string verdict = verdict_on_winner(board); !verdict.empty())
    text += fmt::format("<p class=\"verdict\">{}</p>\n", escape_html(verdict));
  text += section("Best trials", html_table(best_rows(board)));
  text += section("Each key against the metric", "<div class=\"plots\">" + marginal_plots(board) + "</div>");
  text += section("All keys together", parallel_plot(board));
  text += section("Loss curves", curve_plot(folder));
  text +=
      section("Survival and cost", "<div class=\"plots\">" + rung_plot(board) + cost_plot(board) + "</div>");
  const Rows trouble = trouble_rows(board);
  if (trouble.size() > 1) text += section("Failed, stopped and dropped", html_table(trouble));
  return text + fmt::format(
                    "<footer>Written by tycho sweep report {}. Hover over a mark to see its trial.</footer>\n"
                    "</body></html>\n",
                    escape_html(definition.name));
}

std::string markdown_page(const SweepFolder& folder) {
  const Board& board = folder.board();
  const SweepDefinition& definition = board.definition();
  std::string text =
      fmt::format("# Sweep {}\n\n{} trials of `{}`, compared by `{}`.\n\n", definition.name,
                  definition.config.search.kind(), definition.recipe, definition.config.metric.name);
  for (const Fact& fact : facts_of(board)) text += fmt::format("- {}: {}\n", fact.name, fact.value);
  if (const std::string verdict = verdict_on_winner(board); !verdict.empty()) text += "\n" + verdict + "\n";
  text += "\n## Best trials\n\n" + markdown_table(best_rows(board));
  const Rows trouble = trouble_rows(board);
  if (trouble.size() > 1) text += "\n## Failed, stopped and dropped\n\n" + markdown_table(trouble);
  return text;
}

}  // namespace

ReportPages sweep_report(const SweepFolder& folder) { return {html_page(folder), markdown_page(folder)}; }

}  // namespace tycho
