// Draws sweeps.
#include "trainer/sweep/report_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "trainer/report/live_plots.h"
#include "trainer/report/svg.h"
#include "trainer/sweep/importance.h"
#include "trainer/sweep/progress.h"
#include "trainer/sweep/search.h"
#include "trainer/sweep/table.h"

namespace tycho {
namespace {

constexpr int kSmallWidth = 360, kSmallHeight = 280, kWideWidth = 1100, kWideHeight = 380;
constexpr size_t kMaxCurves = 40, kMaxLines = 400;
constexpr int64_t kMaxCurvePoints = 240;
const char* const kNoValueColor = "#c4c4c4";

/// Trials with a value, ranked by the metric alone, and a scale that outliers do not stretch.
struct Ranked {
  std::vector<const Trial*> trials;  // best first
  Scale scale = Scale::linear(0, 1);
  double share(size_t i) const {
    return trials.size() < 2 ? 0 : static_cast<double>(i) / static_cast<double>(trials.size() - 1);
  }
};

Ranked rank(const Board& board) {
  Ranked ranked;
  const Goal goal = board.definition().config.metric.goal;
  for (const Trial& trial : board.trials())
    if (trial.has_value() && std::isfinite(*trial.last.value) && trial.finalist.empty())
      ranked.trials.push_back(&trial);
  std::sort(ranked.trials.begin(), ranked.trials.end(),
            [&](const Trial* a, const Trial* b) { return is_better(a->last.value, b->last.value, goal); });
  if (ranked.trials.empty()) return ranked;
  const size_t n = ranked.trials.size();
  const double best = *ranked.trials[0]->last.value, worst = *ranked.trials[(n - 1) * 9 / 10]->last.value;
  const double low = std::min(best, worst), high = std::max(best, worst), margin = high * 0.06 - low * 0.06;
  ranked.scale = Scale::linear(low - margin, high + margin);
  return ranked;
}

bool is_beyond(const Ranked& ranked, size_t i) {
  return ranked.scale.is_outside(*ranked.trials[i]->last.value);
}

/// Returns the legend for marks on the edge, if there are any.
std::string beyond_text(const Ranked& ranked) {
  for (size_t i = 0; i < ranked.trials.size(); ++i)
    if (is_beyond(ranked, i)) return "▲ beyond the scale";
  return "";
}

std::string hint_of(const Board& board, const Trial& trial) {
  return fmt::format("trial {}: {} {:.5g} at step {}\n{}", trial.number,
                     board.definition().config.metric.name, trial.last.value.value_or(NAN), trial.last.step,
                     pins_text(trial.plan.pins));
}

std::vector<std::string> values_of(const std::vector<const Trial*>& trials, const std::string& key) {
  std::vector<std::string> values;
  for (const Trial* trial : trials)
    if (const auto found = trial->plan.values.find(key); found != trial->plan.values.end())
      values.push_back(found->second);
  return values;
}

/// Returns a small offset that separates the dots of one word, the same every time.
double spread(const Scale& scale, size_t i) {
  return scale.is_words() ? (static_cast<double>(i * 7 % 11) / 10 - 0.5) * 0.06 : 0;
}

std::vector<std::pair<double, double>> thinned(const ThinCurve& curve, const Scale& x, const Scale& y) {
  std::vector<std::pair<double, double>> points;
  const ThinCurve shown = thin(curve, kMaxCurvePoints);
  for (size_t i = 0; i < shown.x.size(); ++i)
    if (std::isfinite(shown.mean[i])) points.emplace_back(x.at(shown.x[i]), y.at(shown.mean[i]));
  return points;
}

/// Draws the training loss of every `stride`th trial for a reader without scripts.
std::string still_losses(const Board& board, const Ranked& ranked, size_t stride,
                         const std::vector<ThinCurve>& curves) {
  std::vector<double> values;
  double last_step = 1;
  for (const ThinCurve& curve : curves) {
    std::copy_if(curve.mean.begin(), curve.mean.end(), std::back_inserter(values),
                 [](double value) { return std::isfinite(value); });
    if (!curve.x.empty()) last_step = std::max(last_step, curve.x.back());
  }
  if (values.empty()) return "";
  std::sort(values.begin(), values.end());
  const Scale y = Scale::linear(values.front() * 0.98, values[(values.size() - 1) * 98 / 100] * 1.02);
  const Scale x = Scale::linear(0, last_step * 1.02);
  Drawing drawing(kWideWidth, kWideHeight,
                  stride == 1 ? "Training loss of every trial"
                              : fmt::format("Training loss of every {}th trial", stride));
  drawing.x_axis(x, "step");
  drawing.y_axis(y, "loss");
  drawing.rank_legend();
  for (size_t c = curves.size(); c-- > 0;) {
    const size_t i = c * stride;
    if (!curves[c].x.empty())
      drawing.line(thinned(curves[c], x, y), rank_color(ranked.share(i)), i == 0 ? 2.4 : 1.2,
                   i == 0 ? 1 : 0.6, hint_of(board, *ranked.trials[i]));
  }
  return drawing.svg();
}

}  // namespace

std::string marginal_plots(const Board& board) {
  const Ranked ranked = rank(board);
  std::string text;
  for (const std::string& key : space_keys(board)) {
    const Scale x = Scale::of(values_of(ranked.trials, key));
    Drawing drawing(kSmallWidth, kSmallHeight, key);
    drawing.x_axis(x, key);
    drawing.y_axis(ranked.scale, board.definition().config.metric.name);
    drawing.rank_legend(beyond_text(ranked));
    for (size_t i = ranked.trials.size(); i-- > 0;) {  // the best on top
      const Trial& trial = *ranked.trials[i];
      const auto value = trial.plan.values.find(key);
      if (value == trial.plan.values.end() || x.at(value->second) < 0) continue;
      const double at = x.at(value->second) + spread(x, i), height = ranked.scale.at(*trial.last.value);
      if (is_beyond(ranked, i))
        drawing.beyond(at, height > 0.5, rank_color(ranked.share(i)), hint_of(board, trial));
      else
        drawing.dot(at, height, rank_color(ranked.share(i)), hint_of(board, trial), i == 0 ? 6 : 3.5);
    }
    text += drawing.svg();
  }
  return text;
}

std::string parallel_plot(const Board& board) {
  const Ranked ranked = rank(board);
  const std::vector<std::string> keys = space_keys(board);
  Drawing drawing(kWideWidth, kWideHeight, "Each line is a trial");
  drawing.rank_legend();
  std::vector<Scale> scales;
  const auto x_of = [&](size_t i) {
    return 0.02 + 0.9 * static_cast<double>(i) / static_cast<double>(keys.size());
  };
  for (const std::string& key : keys) scales.push_back(Scale::of(values_of(ranked.trials, key)));
  const size_t count = std::min(ranked.trials.size(), kMaxLines);
  for (size_t i = count; i-- > 0;) {
    const Trial& trial = *ranked.trials[i];
    std::vector<std::pair<double, double>> points;
    for (size_t k = 0; k < keys.size(); ++k) {
      const auto value = trial.plan.values.find(keys[k]);
      if (value != trial.plan.values.end() && scales[k].at(value->second) >= 0)
        points.emplace_back(x_of(k), scales[k].at(value->second));
    }
    points.emplace_back(x_of(keys.size()), ranked.scale.at(*trial.last.value));
    const bool top = i < std::max<size_t>(1, count / 10);
    drawing.line(points, rank_color(ranked.share(i)), top ? 2.2 : 1.1, top ? 0.95 : 0.45,
                 hint_of(board, trial));
  }
  for (size_t k = 0; k < keys.size(); ++k) drawing.inner_axis(x_of(k), scales[k], keys[k]);
  drawing.inner_axis(x_of(keys.size()), ranked.scale, board.definition().config.metric.name);
  return drawing.svg();
}

std::string curve_plots(const SweepFolder& folder, SweepRuns& runs, const SweepPageOptions& options) {
  const Ranked ranked = rank(folder.board());
  LivePlots plots;
  plots.watched = options.watched, plots.stamp = options.stamp;
  const std::string metric = recorded_name(folder.board().definition().config.metric.name);
  const std::set<std::string> metrics = {"loss", metric};
  plots.plots = metric_plots(metrics);
  std::vector<ThinCurve> losses;
  const size_t stride = std::max<size_t>(1, (ranked.trials.size() + kMaxCurves - 1) / kMaxCurves);
  for (size_t i = 0; i < ranked.trials.size(); i += stride) {
    const RunSummary read = runs.read(folder.run_dir(*ranked.trials[i]), metric).value_or(RunSummary());
    PlottedRun run = {fmt::format("trial {}", ranked.trials[i]->number),
                      ranked.trials[i]->plan.id,
                      hint_of(folder.board(), *ranked.trials[i]),
                      {},
                      ranked.share(i),
                      read.tokens_by_step,
                      read.seconds_by_step};
    for (const std::string& name : metrics)
      if (const ThinCurve& curve = read.curve(name); !curve.x.empty())
        plots.curves.push_back({plots.runs.size(), name, thin(curve, buckets_for(2 * kMaxCurves) / 4)});
    losses.push_back(read.curve("loss"));
    plots.runs.push_back(std::move(run));
  }
  return live_plots(plots, still_losses(folder.board(), ranked, stride, losses));
}

std::string importance_bars(const Board& board) {
  const SweepImportance importance = importance_of(board);
  if (importance.keys.empty()) return "";
  std::string text =
      "<div class=\"importance\"><b>key</b><b>share of the importance</b><b></b><b>correlation</b>";
  for (const KeyImportance& one : importance.keys)
    text += fmt::format("<span>{}</span><i style=\"width:{:.1f}%\"></i><span>{:.0f} %</span><span>{}</span>",
                        escape_html(one.key), 100 * one.share, 100 * one.share,
                        one.correlation ? fmt::format("{:+.2f}", *one.correlation) : "words");
  return text + fmt::format(
                    "</div>\n<p class=\"rule\">Loss of a random forest's accuracy when the values of a key "
                    "are exchanged "
                    "among trials that it has not seen. Together the keys explain {:.0f} % of the "
                    "differences in rank. "
                    "Correlation is Spearman's with {}.</p>\n",
                    100 * importance.explained, escape_html(board.definition().config.metric.name));
}

std::string rung_plot(const Board& board) {
  const auto* asha = std::get_if<AshaSearch>(&board.definition().config.search.value);
  if (asha == nullptr) return "";
  std::vector<std::string> labels = {"begun"};
  std::vector<int64_t> counts = {0};
  for (const Duration& rung : asha->rungs) labels.push_back(rung.str()), counts.push_back(0);
  for (const Trial& trial : board.trials()) {
    if (!trial.finalist.empty()) continue;
    counts[0] += trial.claim > 0 ? 1 : 0;
    for (const auto& [rung, result] : trial.rungs)
      if (rung + 1 < static_cast<int64_t>(counts.size())) ++counts[static_cast<size_t>(rung) + 1];
  }
  const double most = static_cast<double>(std::max<int64_t>(1, counts[0]));
  const Scale x = Scale::of(labels), y = Scale::linear(0, most * 1.12);
  Drawing drawing(kSmallWidth + 120, kSmallHeight, "Trials that got this far");
  drawing.y_axis(y, "trials");
  const auto n = static_cast<double>(labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    const double left = (static_cast<double>(i) + 0.18) / n, height = y.at(static_cast<double>(counts[i]));
    drawing.bar(left, 0.64 / n, height, rank_color(0.75 - 0.65 * static_cast<double>(i) / n),
                fmt::format("{}: {}", labels[i], counts[i]));
    drawing.text(left + 0.32 / n, height + 0.03, std::to_string(counts[i]));
    drawing.text(left + 0.32 / n, -0.085, labels[i]);
  }
  return drawing.svg();
}

std::string cost_plot(const Board& board) {
  std::map<std::string, std::pair<double, int64_t>> by_state;
  double most = 0;
  for (const Trial& trial : board.trials()) {
    if (trial.wall_s <= 0) continue;
    auto& [seconds, count] = by_state[trial.finalist.empty() ? state_name(trial.state) : "repeated"];
    seconds += trial.wall_s, ++count;
    most = std::max(most, seconds);
  }
  if (by_state.empty()) return "";
  const double unit = most > 6000 ? 3600 : most > 100 ? 60 : 1;
  const Scale y = Scale::linear(0, most / unit * 1.12);
  Drawing drawing(kSmallWidth + 120, kSmallHeight, "Time spent, by outcome of the trials");
  drawing.y_axis(y, unit == 3600 ? "hours" : unit == 60 ? "minutes" : "seconds");
  const auto n = static_cast<double>(by_state.size());
  double left = 0;
  for (const auto& [state, spent] : by_state) {
    const double height = y.at(spent.first / unit);
    const bool wasted = state == "failed" || state == "lost";
    drawing.bar((left + 0.2) / n, 0.6 / n, height, wasted ? kNoValueColor : rank_color(0.35),
                fmt::format("{}: {}", state, seconds_text(spent.first)));
    drawing.text(
        (left + 0.5) / n, height + 0.03,
        fmt::format("{}, {} trial{}", seconds_text(spent.first), spent.second, spent.second == 1 ? "" : "s"));
    drawing.text((left + 0.5) / n, -0.085, state);
    left += 1;
  }
  return drawing.svg();
}

}  // namespace tycho
