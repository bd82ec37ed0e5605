// Columns as LLM Foundry's users know them: nodes, runtime, speed-up, throughput, MFU, memory, accuracy.
#include "trainer/report/run_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "trainer/base/bytes.h"
#include "trainer/metrics/format.h"

namespace tycho {
namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Returns true when two runs themselves trained the same number of tokens, up to the rounding of a global
/// batch.
bool same_work(const RunSummary& a, const RunSummary& b) {
  const auto x = static_cast<double>(a.own_tokens), y = static_cast<double>(b.own_tokens);
  return x > 0 && std::abs(x - y) <= 0.01 * std::max(x, y);
}

std::string number_text(const std::optional<double>& value) { return value ? metric_text(*value) : ""; }

Json number_json(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

/// Returns why a run ended, on one line; error messages have several.
std::string end_text(const RunSummary& run) {
  const std::string line = run.end.substr(0, run.end.find('\n'));
  return line.empty() ? "not yet" : line;
}

struct Row {
  const RunSummary& run;
  const RunScaling& scaling;
};

struct Column {
  const char* name;
  std::function<std::string(const Row&)> text;
};

const std::vector<Column>& all_columns() {
  static const std::vector<Column> kColumns = {
      {"run", [](const Row& r) { return printable(r.run.name.empty() ? r.run.folder : r.run.name, true); }},
      {"params",
       [](const Row& r) {
         return r.run.num_params > 0 ? human_count(static_cast<double>(r.run.num_params)) : "";
       }},
      {"nodes", [](const Row& r) { return r.run.num_nodes ? std::to_string(*r.run.num_nodes) : ""; }},
      {"ranks", [](const Row& r) { return std::to_string(r.run.num_ranks); }},
      {"steps", [](const Row& r) { return std::to_string(r.run.step); }},
      {"tokens", [](const Row& r) { return human_count(static_cast<double>(r.run.tokens)); }},
      {"runtime", [](const Row& r) { return clock_text(r.run.runtime_s); }},
      {"speed-up",
       [](const Row& r) { return r.scaling.speed_up ? fmt::format("{:.2f}x", *r.scaling.speed_up) : ""; }},
      {"tokens/s", [](const Row& r) { return r.run.tokens_per_s ? human_count(*r.run.tokens_per_s) : ""; }},
      {"efficiency",
       [](const Row& r) { return r.scaling.efficiency ? percent_text(*r.scaling.efficiency) : ""; }},
      {"MFU", [](const Row& r) { return r.run.mfu ? percent_text(*r.run.mfu) : ""; }},
      {"memory",
       [](const Row& r) {
         return r.run.memory_bytes > 0 ? human_bytes(static_cast<double>(r.run.memory_bytes)) : "";
       }},
      {"planned",
       [](const Row& r) {
         const auto planned = static_cast<double>(r.run.planned_memory_bytes);
         return planned > 0 ? human_bytes(planned) : "";
       }},
      {"checkpoint",
       [](const Row& r) {
         return r.run.checkpoint_bytes > 0 ? human_bytes(static_cast<double>(r.run.checkpoint_bytes)) : "";
       }},
      {"loss", [](const Row& r) { return number_text(r.run.loss); }},
      {"eval loss", [](const Row& r) { return number_text(r.run.eval_loss); }},
      {"accuracy", [](const Row& r) { return number_text(r.run.accuracy); }},
      {"ended", [](const Row& r) { return printable(end_text(r.run), true); }}};
  return kColumns;
}

}  // namespace

std::vector<RunScaling> scaling_of(const std::vector<RunSummary>& runs) {
  std::vector<RunScaling> scalings;
  for (const RunSummary& run : runs) {
    const RunSummary* base = nullptr;
    size_t num_alike = 0;
    for (const RunSummary& other : runs) {
      if (other.num_params != run.num_params || other.work != run.work) continue;
      ++num_alike;
      if (base == nullptr || other.num_ranks < base->num_ranks) base = &other;
    }
    RunScaling scaling;
    if (num_alike > 1 && same_work(run, *base) && run.runtime_s > 0)
      scaling.speed_up = base->runtime_s / run.runtime_s;
    if (num_alike > 1 && run.tokens_per_s && base->tokens_per_s && *base->tokens_per_s > 0)
      scaling.efficiency = (*run.tokens_per_s / static_cast<double>(run.num_ranks)) /
                           (*base->tokens_per_s / static_cast<double>(base->num_ranks));
    scalings.push_back(scaling);
  }
  return scalings;
}

Rows run_table(const std::vector<RunSummary>& runs) {
  const std::vector<RunScaling> scalings = scaling_of(runs);
  Rows rows(runs.size() + 1);
  for (const Column& column : all_columns()) {
    std::vector<std::string> cells;
    for (size_t i = 0; i < runs.size(); ++i) cells.push_back(column.text({runs[i], scalings[i]}));
    if (std::all_of(cells.begin(), cells.end(), [](const std::string& cell) { return cell.empty(); }))
      continue;
    rows[0].push_back(column.name);
    for (size_t i = 0; i < runs.size(); ++i) rows[i + 1].push_back(cells[i].empty() ? "-" : cells[i]);
  }
  return rows;
}

Json runs_json(const std::vector<RunSummary>& runs) {
  const std::vector<RunScaling> scalings = scaling_of(runs);
  Json list = Json::array();
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunSummary& run = runs[i];
    list.push_back({{"folder", run.folder},
                    {"run_name", run.name},
                    {"device", run.device},
                    {"precision", run.precision},
                    {"num_params", run.num_params},
                    {"num_nodes", run.num_nodes ? Json(*run.num_nodes) : Json(nullptr)},
                    {"num_ranks", run.num_ranks},
                    {"attempts", run.num_attempts},
                    {"step", run.step},
                    {"total_steps", run.total_steps},
                    {"tokens", run.tokens},
                    {"own_tokens", run.own_tokens},
                    {"parent", run.parent.empty() ? Json(nullptr) : Json(run.parent)},
                    {"runtime_s", run.runtime_s},
                    {"speed_up", number_json(scalings[i].speed_up)},
                    {"tokens_per_s", number_json(run.tokens_per_s)},
                    {"efficiency", number_json(scalings[i].efficiency)},
                    {"mfu", number_json(run.mfu)},
                    {"data_wait_share", number_json(run.data_wait_share)},
                    {"memory_bytes", run.memory_bytes},
                    {"planned_memory_bytes", run.planned_memory_bytes},
                    {"checkpoint_bytes", run.checkpoint_bytes},
                    {"loss", number_json(run.loss)},
                    {"eval_loss", number_json(run.eval_loss)},
                    {"accuracy", number_json(run.accuracy)},
                    {"end", run.end}});
  }
  return list;
}

Curve scaling_curve(const std::vector<RunSummary>& runs) {
  std::map<int64_t, double> fastest;
  for (const RunSummary& run : runs)
    if (run.tokens_per_s) fastest[run.num_ranks] = std::max(fastest[run.num_ranks], *run.tokens_per_s);
  Curve curve;
  if (fastest.size() < 2) return curve;
  for (const auto& [ranks, speed] : fastest) {
    curve.x.push_back(static_cast<double>(ranks));
    curve.y.push_back(speed);
  }
  return curve;
}

}  // namespace tycho
