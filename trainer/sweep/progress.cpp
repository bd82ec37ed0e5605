// Follows metrics.jsonl and events.jsonl.
#include "trainer/sweep/progress.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/text/json_number.h"
#include "trainer/sweep/search.h"

namespace tycho {
namespace {

constexpr std::string_view kTrain = "train.", kEval = "eval.";

int64_t whole(const Json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_number() ? found->get<int64_t>() : 0;
}

}  // namespace

std::string recorded_name(const std::string& metric) {
  return metric.starts_with(kTrain) ? metric.substr(kTrain.size()) : metric;
}

bool RunProgress::update() {
  bool any = false;
  const auto read = [&](LineTail& file, void (RunProgress::*take)(const Json&)) {
    file.read([&](const Json& record) {
      if (!record.contains("step") || !record["step"].is_number()) return;
      (this->*take)(record);
      any = true;
    });
  };
  read(metrics_, &RunProgress::take_metrics);
  read(events_, &RunProgress::take_event);
  return any;
}

void RunProgress::take_metrics(const Json& record) {
  step_ = whole(record, "step");
  if (record.contains("tokens")) tokens_ = whole(record, "tokens");  // numbers of callbacks come without
  newest_["step"] = step_, newest_["tokens"] = tokens_;
  const auto step = static_cast<double>(step_), attempt = static_cast<double>(whole(record, "attempt"));
  for (const auto& [key, given] : record.items()) {
    const std::optional<double> value = number_in(record, key);
    if (!value) continue;
    series_[key].add(step, *value, attempt);
    newest_["train"][key] = given.is_null() ? Json(*value) : given;
  }
}

void RunProgress::take_event(const Json& record) {
  // A run that stops between two records of log.every has trained up to here.
  if (const std::string kind = record.value("kind", ""); kind == "checkpoint" || kind == "run_end")
    step_ = std::max(step_, whole(record, "step"));
  if (record.value("kind", "") != "eval" || !record.contains("facts") || !record["facts"].is_object()) return;
  const Json& facts = record["facts"];
  if (const auto name = facts.find("name"); name != facts.end() && name->is_string())
    take_figures(record, *name);
  if (const auto total = facts.find("total"); total != facts.end() && *total == true)
    take_figures(record, "");
}

// Of a set, or "" for all of them together.
void RunProgress::take_figures(const Json& record, const std::string& set) {
  const std::string prefix = std::string(kEval) + (set.empty() ? "" : set + ".");
  const auto step = static_cast<double>(whole(record, "step")),
             attempt = static_cast<double>(whole(record, "attempt"));
  const Json& facts = record["facts"];
  Json& newest = set.empty() ? newest_["eval"] : newest_["eval"][set];
  for (const auto& [key, given] : facts.items()) {
    const std::optional<double> value = number_in(facts, key);
    if (!value) continue;
    series_[prefix + key].add(step, *value, attempt);
    newest[key] = given.is_null() ? Json(*value) : given;
  }
}

const Curve& RunProgress::series(const std::string& name) const {
  static const Curve kNone;
  const auto found = series_.find(recorded_name(name));
  return found == series_.end() ? kNone : found->second.curve();
}

std::map<std::string, double> RunProgress::eval_losses() const {
  std::map<std::string, double> losses;
  for (const auto& [name, series] : series_)
    if (name.starts_with(kEval) && name.ends_with(".loss")) losses[name] = series.curve().y.back();
  return losses;
}

std::optional<double> comparable_value(const RunProgress& progress, const std::string& metric) {
  const std::vector<double>& values = progress.series(metric).y;
  if (values.empty()) return {};
  if (metric.starts_with(kEval)) return values.back();
  const size_t count = std::max<size_t>(1, values.size() / 10);
  double sum = 0, num = 0;  // over finite values: a step that guard.action = "skip" skipped says nothing
  for (size_t i = values.size() - count; i < values.size(); ++i)
    if (std::isfinite(values[i])) sum += values[i], ++num;
  return num > 0 ? sum / num : values.back();
}

RungResult rung_result(const RunProgress& progress, const std::string& metric) {
  return {progress.step(), progress.tokens(), comparable_value(progress, metric), progress.eval_losses()};
}

bool is_out_of_patience(const PatienceRule& rule, const RunProgress& progress, Goal goal) {
  const std::vector<double>& values = progress.series(rule.metric).y;
  const auto last = static_cast<size_t>(rule.evals);
  if (values.size() <= last) return false;
  const double sign = goal == Goal::kMin ? 1 : -1;
  double best_before = INFINITY, best_since = INFINITY;
  for (size_t i = 0; i < values.size(); ++i) {
    double& best = i + last < values.size() ? best_before : best_since;
    best = std::min(best, sign * values[i]);
  }
  return !(best_since < best_before - rule.min_delta);
}

}  // namespace tycho
