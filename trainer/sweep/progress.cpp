// Follows metrics.jsonl and events.jsonl.
#include "trainer/sweep/progress.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/text/json_number.h"
#include "trainer/sweep/search.h"

namespace tycho {
namespace {

constexpr std::string_view kTrain = "train.", kEval = "eval.";

/// Passes every complete new line that parses to `take`. Returns true when there was one.
bool read_lines(const std::string& path, int64_t& offset, const std::function<void(const Json&)>& take) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) < 0 || info.st_size <= offset) return false;
  std::string text(static_cast<size_t>(info.st_size - offset), '\0');
  read_exactly(path, offset, text.data(), text.size());
  size_t begin = 0;
  bool any = false;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const Json record = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                    text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (!record.is_object() || !record.contains("step") || !record["step"].is_number()) continue;
    take(record);
    any = true;
  }
  offset += static_cast<int64_t>(begin);
  return any;
}

int64_t whole(const Json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_number() ? found->get<int64_t>() : 0;
}

}  // namespace

bool RunProgress::update() {
  const bool metrics = read_lines(run_dir_ + "/metrics.jsonl", metrics_offset_,
                                  [this](const Json& record) { take_metrics(record); });
  const bool events = read_lines(run_dir_ + "/events.jsonl", events_offset_,
                                 [this](const Json& record) { take_event(record); });
  return metrics || events;
}

void RunProgress::take_metrics(const Json& record) {
  step_ = whole(record, "step");
  if (record.contains("tokens")) tokens_ = whole(record, "tokens");  // numbers of callbacks come without
  newest_["step"] = step_, newest_["tokens"] = tokens_;
  const int64_t attempt = whole(record, "attempt");
  for (const auto& [key, given] : record.items()) {
    const std::optional<double> value = number_in(record, key);
    if (!value) continue;
    auto& points = series_[key];
    if (attempt > attempts_[key]) points.erase(points.lower_bound(step_), points.end());
    attempts_[key] = attempt;
    points[step_] = {step_, tokens_, *value};
    newest_["train"][key] = given.is_null() ? Json(*value) : given;
  }
}

void RunProgress::take_event(const Json& record) {
  if (record.value("kind", "") != "eval" || !record.contains("facts") || !record["facts"].is_object()) return;
  const Json& facts = record["facts"];
  const int64_t step = whole(record, "step");
  if (const auto name = facts.find("name"); name != facts.end() && name->is_string())
    take_figures(facts, step, *name);
  if (const auto total = facts.find("total"); total != facts.end() && *total == true)
    take_figures(facts, step, "");
}

// Of a set, or "" for all of them together.
void RunProgress::take_figures(const Json& facts, int64_t step, const std::string& set) {
  const std::string prefix = std::string(kEval) + (set.empty() ? "" : set + ".");
  Json& newest = set.empty() ? newest_["eval"] : newest_["eval"][set];
  for (const auto& [key, given] : facts.items()) {
    const std::optional<double> value = number_in(facts, key);
    if (!value) continue;
    series_[prefix + key][step] = {step, tokens_, *value};
    newest[key] = given.is_null() ? Json(*value) : given;
  }
}

std::vector<MetricPoint> RunProgress::series(const std::string& name) const {
  const bool train = name.starts_with(kTrain);
  const auto found = series_.find(train ? name.substr(kTrain.size()) : name);
  std::vector<MetricPoint> points;
  if (found == series_.end()) return points;
  for (const auto& [step, point] : found->second) points.push_back(point);
  return points;
}

std::map<std::string, double> RunProgress::eval_losses() const {
  std::map<std::string, double> losses;
  for (const auto& [name, points] : series_)
    if (name.starts_with(kEval) && name.ends_with(".loss") && !points.empty())
      losses[name] = points.rbegin()->second.value;
  return losses;
}

std::optional<double> comparable_value(const RunProgress& progress, const std::string& metric) {
  const std::vector<MetricPoint> points = progress.series(metric);
  if (points.empty()) return {};
  if (metric.starts_with(kEval)) return points.back().value;
  const size_t count = std::max<size_t>(1, points.size() / 10);
  double sum = 0, num = 0;  // over finite values: a step that guard.action = "skip" skipped says nothing
  for (size_t i = points.size() - count; i < points.size(); ++i)
    if (std::isfinite(points[i].value)) sum += points[i].value, ++num;
  return num > 0 ? sum / num : points.back().value;
}

RungResult rung_result(const RunProgress& progress, const std::string& metric) {
  return {progress.step(), progress.tokens(), comparable_value(progress, metric), progress.eval_losses()};
}

bool is_out_of_patience(const PatienceRule& rule, const RunProgress& progress, Goal goal) {
  const std::vector<MetricPoint> points = progress.series(rule.metric);
  const auto last = static_cast<size_t>(rule.evals);
  if (points.size() <= last) return false;
  const double sign = goal == Goal::kMin ? 1 : -1;
  double best_before = INFINITY, best_since = INFINITY;
  for (size_t i = 0; i < points.size(); ++i) {
    double& best = i + last < points.size() ? best_before : best_since;
    best = std::min(best, sign * points[i].value);
  }
  return !(best_since < best_before - rule.min_delta);
}

}  // namespace tycho
