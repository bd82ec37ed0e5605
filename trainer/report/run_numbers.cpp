// Thins numbers while they are read: what is kept of each metric does not grow with the run.
#include "trainer/report/run_numbers.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <string_view>

#include "trainer/base/text/json_number.h"

namespace tycho {
namespace {

constexpr size_t kMostKnots = 2048;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Returns the median without the first quarter, in which a run warms up.
std::optional<double> steady(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return median_of({values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4), values.end()});
}

double steady_mean(const ThinCurve& curve) { return mean_from(curve, curve.num_points / 4); }

bool is_accuracy(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name.find("accuracy") != std::string::npos;
}

}  // namespace

void TrainingClock::add(double step, double tokens, double seconds) {
  if (last_ && step < last_->step) return;
  if (last_ && step > last_->step && ++num_since_ >= stride_) {
    knots_.push_back(*last_);
    num_since_ = 0;
  }
  last_ = Knot{step, tokens, seconds};
  if (knots_.size() < kMostKnots) return;
  for (size_t i = 0; i < knots_.size() / 2; ++i) knots_[i] = knots_[2 * i];
  knots_.resize(knots_.size() / 2);
  stride_ *= 2;
}

void TrainingClock::cut_after(double step) {
  if (!last_ || last_->step <= step) return;
  while (!knots_.empty() && knots_.back().step > step) knots_.pop_back();
  last_.reset();
  if (knots_.empty()) return;
  last_ = knots_.back();
  knots_.pop_back();
}

Curve TrainingClock::curve(double Knot::*member) const {
  Curve curve;
  for (const Knot& knot : knots_) curve.x.push_back(knot.step), curve.y.push_back(knot.*member);
  if (last_) curve.x.push_back(last_->step), curve.y.push_back((*last_).*member);
  return curve;
}

RunNumbers::Metric& RunNumbers::metric_of(const std::string& name) {
  const auto [found, is_new] = metrics_.try_emplace(name);
  static const std::set<std::string> kNoMetrics = {"step",    "attempt", "time",    "tokens",
                                                   "samples", "epoch",   kNotFinite};
  if (is_new && !kNoMetrics.contains(name)) {
    const std::vector<std::string>& always = standard_metrics();
    found->second.is_accuracy = is_accuracy(name);
    found->second.is_wanted =
        std::find(always.begin(), always.end(), name) != always.end() ||
        std::any_of(patterns_.begin(), patterns_.end(), [&](const std::string& pattern) {
          return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
        });
  }
  return found->second;
}

void RunNumbers::forget(int64_t attempt, int64_t kept) {
  const auto [known, is_new] = kept_.try_emplace(attempt, kept);
  if (!is_new && known->second <= kept) return;
  known->second = kept;
  const auto last = static_cast<double>(kept);
  for (auto& [name, metric] : metrics_) is_stale_ |= !metric.curve.cut_after(last);
  clock_.cut_after(last);
}

void RunNumbers::forget(const std::map<int64_t, int64_t>& kept) {
  for (const auto& [attempt, step] : kept) forget(attempt, step);
}

bool RunNumbers::is_forgotten(int64_t step, int64_t attempt) const {
  return std::any_of(kept_.upper_bound(attempt), kept_.end(),
                     [&](const auto& later) { return step > later.second; });
}

void RunNumbers::take(const Json& record, RunEvents& events) {
  events.see(record);
  const auto step = count_in(record, "step");
  const auto attempt = record.contains("attempt") ? count_in(record, "attempt") : attempt_;
  if (attempt > attempt_) {
    attempt_ = attempt;
    forget(attempt, std::min(step, events.first_step_of(attempt, step - 1)));
  }
  const bool is_drawn = step <= last_step_ && !is_stale_ && !is_forgotten(step, attempt);
  for (const auto& [name, given] : record.items()) {
    const std::optional<double> value = given.is_number() ? given.get<double>() : number_in(record, name);
    if (!value) continue;
    Metric& metric = metric_of(name);
    if (metric.is_accuracy && given.is_number()) metric.newest = *value, metric.has_newest = true;
    if (metric.is_wanted && is_drawn) metric.curve.add(static_cast<double>(step), *value);
  }
  if (!number_in(record, "loss")) return;
  events.has_trained(attempt);
  if (is_drawn)
    clock_.add(static_cast<double>(step), static_cast<double>(count_in(record, "tokens")),
               events.trained_s(number_in(record, "time").value_or(0), attempt));
  take_step(record, step, attempt, events);
}

void RunNumbers::take_step(const Json& record, int64_t step, int64_t attempt, RunEvents& events) {
  step_ = step;
  tokens_ = count_in(record, "tokens");
  // Steps have the same number of tokens, as far as the first record can tell.
  if (!parents_tokens_) parents_tokens_ = tokens_ / std::max<int64_t>(1, step) * events.first_step();
  own_tokens_ = tokens_ - *parents_tokens_;
  memory_bytes_ = std::max(memory_bytes_, count_in(record, "memory_bytes"));
  take_steady(record, attempt);
}

void RunNumbers::take_steady(const Json& record, int64_t attempt) {
  if (attempt != steady_.attempt) {
    steady_ = {};
    steady_.attempt = attempt;
  }
  if (const auto speed = number_in(record, "tokens_per_s")) steady_.tokens_per_s.push_back(*speed);
  if (const auto mfu = number_in(record, "mfu")) steady_.mfu.push_back(*mfu);
  steady_.num += 1;
  steady_.step_s.add(steady_.num, number_in(record, "step_s").value_or(0));
  steady_.data_wait_s.add(steady_.num, number_in(record, "data_wait_s").value_or(0));
}

void RunNumbers::take_beside(const Json& record) {
  const int64_t step = count_in(record, "step");
  if (step > last_step_) return;
  for (const auto& [name, given] : record.items())
    if (const std::optional<double> value = number_in(record, name); value && metric_of(name).is_wanted)
      beside_[{text_in(record, "weights"), name}][static_cast<double>(step)] = *value;
}

/// Returns the numbers of processes beside the run by the names that tell weights apart.
std::map<std::string, std::map<double, double>> RunNumbers::beside(const RunSummary& run) const {
  constexpr std::string_view kEval = "eval.";
  const std::string own = run.evaluated_weights ? *run.evaluated_weights
                          : beside_.empty()     ? ""
                                                : beside_.begin()->first.first;  // "" comes before "ema"
  std::map<std::string, std::map<double, double>> named;
  for (const auto& [key, points] : beside_) {
    const auto& [weights, name] = key;
    const bool is_other = weights != own && name.starts_with(kEval);
    named[is_other
              ? fmt::format("eval.{}.{}", weights.empty() ? "trained" : weights, name.substr(kEval.size()))
              : name] = points;
  }
  return named;
}

void RunNumbers::summarize(RunSummary& run) const {
  double accuracy = 0, num_accuracies = 0;
  auto others = beside(run);
  const auto add_curve = [&](const std::string& name, GrowingCurve curve) {
    for (const auto& [step, value] : others[name]) curve.add(step, value);
    others.erase(name);
    if (name == "eval.loss") run.eval_loss = curve.last();
    if (ThinCurve thinned = curve.curve(); !thinned.x.empty()) run.curves[name] = std::move(thinned);
  };
  for (const auto& [name, metric] : metrics_) {
    if (metric.has_newest) ++num_accuracies, accuracy += metric.newest;
    add_curve(name, metric.curve);
  }
  while (!others.empty()) add_curve(std::string(others.begin()->first), {});
  if (num_accuracies > 0) run.accuracy = accuracy / num_accuracies;
  run.step = step_, run.tokens = tokens_, run.own_tokens = own_tokens_, run.memory_bytes = memory_bytes_;
  run.tokens_by_step = clock_.tokens(), run.seconds_by_step = clock_.seconds();
  if (const ThinCurve& loss = run.curve("loss"); loss.num_points > 0)
    run.loss = mean_from(loss, loss.num_points - std::max<int64_t>(1, loss.num_points / 10));
  run.tokens_per_s = steady(steady_.tokens_per_s);
  run.mfu = steady(steady_.mfu);
  const double step_s = steady_mean(steady_.step_s.curve());
  if (step_s > 0 && std::isfinite(step_s))
    run.data_wait_share = steady_mean(steady_.data_wait_s.curve()) / step_s;
}

}  // namespace tycho
