// Rows of trials, and their forms.
#include "trainer/sweep/table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "trainer/base/error.h"
#include "trainer/base/nearest.h"
#include "trainer/sweep/search.h"

namespace tycho {
namespace {

const std::vector<std::string> kOwnColumns = {"trial", "id",     "state", "rung",
                                              "step",  "tokens", "wall",  "note"};

std::string metric_cell(const Board& board, const Trial& trial) {
  if (!trial.has_value()) return "";
  const SeedNoise noise = trial.is_repeated ? seed_noise(board, trial) : SeedNoise{};
  if (noise.runs < 2) return fmt::format("{:.5g}", *trial.last.value);
  return fmt::format("{:.5g} +- {:.2g}", noise.mean, noise.std);
}

std::string cell(const Board& board, const Trial& trial, const std::string& column) {
  if (column == "trial") return std::to_string(trial.number);
  if (column == "id") return trial.plan.id;
  if (column == "state") return state_name(trial.state);
  if (column == "rung") return trial.rungs.empty() ? "" : std::to_string(trial.rungs.rbegin()->first);
  if (column == "step") return trial.last.step > 0 ? std::to_string(trial.last.step) : "";
  if (column == "tokens") return trial.last.tokens > 0 ? std::to_string(trial.last.tokens) : "";
  if (column == "wall") return trial.wall_s > 0 ? seconds_text(trial.wall_s) : "";
  if (column == "note") {
    const Trial* first = trial.finalist.empty() ? nullptr : board.find(trial.finalist);
    return first ? fmt::format("trial {} with another seed{}{}", first->number,
                               trial.note.empty() ? "" : "; ", trial.note)
                 : trial.note;
  }
  if (column == board.definition().config.metric.name) return metric_cell(board, trial);
  if (const auto loss = trial.last.evals.find(column); loss != trial.last.evals.end())
    return fmt::format("{:.5g}", loss->second);
  const auto found = trial.plan.values.find(column);
  return found == trial.plan.values.end() ? "" : found->second;
}

/// Returns the losses of sets that some trial has evaluated, or that the sweep asks for.
std::set<std::string> eval_columns(const Board& board) {
  std::set<std::string> columns;
  for (const Trial& trial : board.trials())
    for (const auto& [metric, loss] : trial.last.evals) columns.insert(metric);
  for (const std::string& column : board.definition().config.report.columns)
    if (column.starts_with("eval.")) columns.insert(column);
  columns.erase(board.definition().config.metric.name);
  return columns;
}

std::vector<std::string> columns_of(const Board& board, const TableOptions& options) {
  const SweepConfig& config = board.definition().config;
  std::vector<std::string> columns = options.columns.empty() ? config.report.columns : options.columns;
  const std::vector<std::string> keys = space_keys(board);
  if (columns.empty()) {
    columns = {"trial"};
    columns.insert(columns.end(), keys.begin(), keys.end());
    columns.push_back(config.metric.name);
    if (config.search.is<AshaSearch>()) columns.push_back("rung");
    for (const char* name : {"step", "wall", "state", "note"}) columns.emplace_back(name);
  } else if (std::find(columns.begin(), columns.end(), "trial") == columns.end()) {
    columns.insert(columns.begin(), "trial");
  }
  std::vector<std::string> known = kOwnColumns;
  known.insert(known.end(), keys.begin(), keys.end());
  known.push_back(config.metric.name);
  const std::set<std::string> evals = eval_columns(board);
  known.insert(known.end(), evals.begin(), evals.end());
  for (const std::string& column : columns) {
    if (std::find(known.begin(), known.end(), column) == known.end())
      fail(ExitCode::kUsage, "[sweep table] no column \"{}\"; available: {}{}", column,
           fmt::join(known, ", "), did_you_mean(column, known));
  }
  return columns;
}

std::optional<double> leading_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || text.empty()) return {};
  return value;
}

/// Compares cells: numbers by size, text by letters, empty cells last.
bool cell_before(const std::string& a, const std::string& b) {
  if (a.empty() != b.empty()) return b.empty();
  const auto x = leading_number(a), y = leading_number(b);
  if (x && y) return *x < *y;
  return a < b;
}

std::vector<const Trial*> sorted(const Board& board, const std::string& column) {
  std::vector<const Trial*> list;
  for (const Trial& trial : board.trials()) list.push_back(&trial);
  const MetricConfig& metric = board.definition().config.metric;
  const bool by_metric = column.empty() || column == metric.name;
  std::map<const Trial*, std::string> cells;
  if (!by_metric)
    for (const Trial* trial : list)
      cells[trial] = column == "wall" ? std::to_string(trial->wall_s) : cell(board, *trial, column);
  std::stable_sort(list.begin(), list.end(), [&](const Trial* a, const Trial* b) {
    if (!by_metric) return cell_before(cells[a], cells[b]);
    return is_better(a->last.value, b->last.value, metric.goal);
  });
  return list;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string seconds_text(double seconds) {
  if (seconds < 100) return fmt::format("{:.1f} s", seconds);
  if (seconds < 6000) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::vector<std::string> space_keys(const Board& board) {
  std::set<std::string> keys;
  for (const Trial& trial : board.trials())
    for (const auto& [key, value] : trial.plan.values) keys.insert(key);
  return {keys.begin(), keys.end()};
}

std::vector<std::vector<std::string>> sweep_table(const Board& board, const TableOptions& options) {
  const std::vector<std::string> columns = columns_of(board, options);
  const std::string sort = options.sort.empty() ? board.definition().config.report.sort : options.sort;
  if (!sort.empty()) columns_of(board, {.columns = {sort}});
  std::vector<std::vector<std::string>> rows = {columns};
  for (const Trial* trial : sorted(board, sort)) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const std::string& column : columns) row.push_back(cell(board, *trial, column));
  }
  return rows;
}

Json sweep_json(const Board& board) {
  Json trials = Json::array();
  for (const Trial& trial : board.trials()) {
    Json rungs = Json::array();
    for (const auto& [rung, result] : trial.rungs)
      rungs.push_back({{"rung", rung},
                       {"step", result.step},
                       {"tokens", result.tokens},
                       {"value", result.value ? Json(*result.value) : Json(nullptr)}});
    trials.push_back({{"trial", trial.number},
                      {"id", trial.plan.id},
                      {"state", state_name(trial.state)},
                      {"pins", trial.plan.pins},
                      {"values", trial.plan.values},
                      {"value", trial.last.value ? Json(*trial.last.value) : Json(nullptr)},
                      {"evals", trial.last.evals},
                      {"step", trial.last.step},
                      {"tokens", trial.last.tokens},
                      {"wall_s", trial.wall_s},
                      {"rungs", std::move(rungs)},
                      {"repeats", trial.finalist},
                      {"note", trial.note}});
  }
  return {{"sweep", board.definition().name},
          {"metric", board.definition().config.metric.name},
          {"verdict", verdict_on_winner(board)},
          {"trials", std::move(trials)}};
}

std::string csv_text(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) text += (i > 0 ? "," : "") + csv_cell(row[i]);
    text += "\n";
  }
  return text;
}

std::string markdown_table(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (const auto& row : rows) {
    text += "|";
    for (std::string cell : row) {
      for (size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2) cell.insert(at, "\\");
      text += " " + cell + " |";
    }
    text += "\n";
    if (&row == &rows.front()) {
      text += "|";
      for (size_t i = 0; i < row.size(); ++i) text += "---|";
      text += "\n";
    }
  }
  return text;
}

std::string sweep_summary(const Board& board) {
  int64_t done = 0, working = 0, open = 0, failed = 0;
  for (const Trial& trial : board.trials()) {
    if (trial.is_working())
      ++working;
    else if (trial.is_open())
      ++open;
    else if (trial.state == TrialState::kFailed)
      ++failed;
    else
      ++done;
  }
  std::string text = fmt::format("{} of {} done", done, board.trials().size());
  if (working > 0) text += fmt::format(", {} running", working);
  if (open > 0) text += fmt::format(", {} to do", open);
  if (failed > 0) text += fmt::format(", {} failed", failed);
  const std::vector<const Trial*> best = ranking(board);
  if (!best.empty()) text += fmt::format(", best {:.5g} (trial {})", *best[0]->last.value, best[0]->number);
  return text;
}

}  // namespace tycho
