// Draws runs over each other, and their speed over ranks.
#include "trainer/report/run_page.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "trainer/base/bytes.h"
#include "trainer/metrics/format.h"
#include "trainer/report/html_page.h"
#include "trainer/report/live_plots.h"
#include "trainer/report/run_sections.h"
#include "trainer/report/run_table.h"
#include "trainer/report/svg.h"

namespace tycho {
namespace {

constexpr int kWide = 1100, kHigh = 340, kSmall = 540;
constexpr size_t kMostPoints = 400;

using Points = std::vector<std::pair<double, double>>;

/// Returns means of adjacent points, at most kMostPoints, without those that are not finite.
Points thinned_curve(const ThinCurve& curve, const Scale& x, const Scale& y) {
  Points points;
  const size_t stride = std::max<size_t>(1, (curve.x.size() + kMostPoints - 1) / kMostPoints);
  for (size_t begin = 0; begin < curve.x.size(); begin += stride) {
    double mean = 0, num = 0;
    const size_t end = std::min(begin + stride, curve.x.size());
    for (size_t i = begin; i < end; ++i)
      if (std::isfinite(curve.mean[i])) ++num, mean += curve.mean[i] / num - mean / num;
    if (num > 0) points.emplace_back(x.at(curve.x[end - 1]), y.at(mean));
  }
  return points;
}

std::string run_color(size_t i, size_t num_runs) {
  return rank_color(num_runs < 2 ? 0 : static_cast<double>(i) / static_cast<double>(num_runs - 1));
}

bool is_chosen(const std::string& metric, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), metric.c_str(), 0) == 0;
  });
}

/// Draws the loss of each run for a reader without scripts; "" when none has points. The highest hundredth
/// may be outside the frame, so that the first steps do not flatten the rest.
std::string still_loss(const std::vector<RunSummary>& runs) {
  std::vector<double> values;
  double last_step = 1;
  for (const RunSummary& run : runs) {
    const ThinCurve& curve = run.curve("loss");
    if (!curve.x.empty()) last_step = std::max(last_step, curve.x.back());
    std::copy_if(curve.mean.begin(), curve.mean.end(), std::back_inserter(values),
                 [](double y) { return std::isfinite(y); });
  }
  if (values.empty()) return "";
  std::sort(values.begin(), values.end());
  const double high = values[(values.size() - 1) * 99 / 100], low = values.front();
  const double room = high * 0.05 - low * 0.05;
  const Scale x = Scale::linear(0, last_step * 1.02), y = Scale::linear(low - room, high + room);
  Drawing drawing(kWide, kHigh, "Loss");
  drawing.x_axis(x, "step");
  drawing.y_axis(y, "nats per token");
  std::vector<std::pair<std::string, std::string>> legend;
  for (size_t i = 0; i < runs.size(); ++i) {
    legend.emplace_back(run_color(i, runs.size()), runs[i].name);
    const Points points = thinned_curve(runs[i].curve("loss"), x, y);
    if (!points.empty()) drawing.line(points, run_color(i, runs.size()), 1.6, 0.9, runs[i].name);
  }
  return "<p>Zooming, smoothing and all other metrics need a browser that runs scripts.</p>" +
         html_legend(legend) + drawing.svg();
}

/// Adds a run, or a parent that leads to `fork`, with all its curves.
void add_run(LivePlots& plots, const RunSummary& run, int64_t most_buckets,
             std::optional<size_t> fork = std::nullopt) {
  const size_t index = plots.runs.size();
  plots.runs.push_back({fork ? "parent of " + plots.runs[*fork].name : run.name, run.folder, "", fork,
                        std::nullopt, run.tokens_by_step, run.seconds_by_step});
  for (const auto& [metric, curve] : run.curves)
    plots.curves.push_back({index, metric, thin(curve, most_buckets)});
}

/// Returns every curve of the runs. A fork's begin at its own first step; its parent's lead to them.
std::string plots_of_runs(const std::vector<RunSummary>& runs, const RunPageOptions& options) {
  LivePlots plots;
  plots.watched = options.watched, plots.stamp = options.stamp;
  plots.smoothing = options.smoothing;
  std::set<std::string> metrics;
  size_t num_curves = 0;
  for (const RunSummary& run : runs) {
    for (const auto& [metric, curve] : run.curves) metrics.insert(metric);
    const auto parent = options.parents.find(run.folder);
    num_curves += run.curves.size() + (parent == options.parents.end() ? 0 : parent->second.curves.size());
  }
  std::set<std::string> first;
  std::copy_if(metrics.begin(), metrics.end(), std::inserter(first, first.end()),
               [&](const std::string& metric) { return is_chosen(metric, options.chosen); });
  plots.plots = metric_plots(metrics, first);
  const int64_t most = buckets_for(num_curves);
  for (const RunSummary& run : runs) add_run(plots, run, most);
  for (size_t i = 0; i < runs.size(); ++i)
    if (const auto parent = options.parents.find(runs[i].folder); parent != options.parents.end())
      add_run(plots, parent->second, most, i);
  return live_plots(plots, still_loss(runs));
}

/// Draws tokens per second over ranks, and the ideal in which every rank is as fast as one of the smallest
/// run.
std::string scaling_plot(const std::vector<RunSummary>& runs) {
  const Curve curve = scaling_curve(runs);
  if (curve.x.empty()) return "";
  const double most = curve.x.back(), ideal = curve.y.front() / curve.x.front() * most;
  const Scale x = Scale::linear(0, most * 1.05);
  const Scale y = Scale::linear(0, std::max(ideal, *std::max_element(curve.y.begin(), curve.y.end())) * 1.08);
  Drawing drawing(kSmall, kHigh, "Tokens per second over ranks");
  drawing.x_axis(x, "ranks");
  drawing.y_axis(y, "tokens/s");
  drawing.line({{x.at(0.0), y.at(0.0)}, {x.at(most), y.at(ideal)}}, "#c4c4c4", 1.2, 1,
               "as fast per rank as the smallest");
  Points points;
  for (size_t i = 0; i < curve.x.size(); ++i) points.emplace_back(x.at(curve.x[i]), y.at(curve.y[i]));
  drawing.line(points, rank_color(0.3), 2, 1);
  for (size_t i = 0; i < points.size(); ++i)
    drawing.dot(points[i].first, points[i].second, rank_color(0.3),
                fmt::format("{:g} ranks: {} tokens/s", curve.x[i], human_count(curve.y[i])), 4);
  return drawing.svg();
}

/// Draws the share of the steps' time spent waiting for data, a bar for each run.
std::string waiting_plot(const std::vector<RunSummary>& runs) {
  double most = 0.05;
  for (const RunSummary& run : runs) most = std::max(most, run.data_wait_share.value_or(0));
  const Scale y = Scale::linear(0, most * 115);
  Drawing drawing(kSmall, kHigh, "Time of a step spent waiting for data");
  drawing.y_axis(y, "%");
  const auto n = static_cast<double>(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    const double share = runs[i].data_wait_share.value_or(0), left = (static_cast<double>(i) + 0.2) / n;
    drawing.bar(left, 0.6 / n, y.at(100 * share), run_color(i, runs.size()),
                fmt::format("{}: {}", runs[i].name, percent_text(share)));
    if (runs.size() <= 8) drawing.text(left + 0.3 / n, -0.07, runs[i].name);
  }
  return drawing.svg();
}

std::vector<PageFact> facts_of_runs(const std::vector<RunSummary>& runs) {
  double runtime_s = 0, rank_s = 0, tokens = 0;
  for (const RunSummary& run : runs) {
    runtime_s += run.runtime_s;
    rank_s += run.runtime_s * static_cast<double>(run.num_ranks);
    tokens += static_cast<double>(run.tokens);
  }
  return {{std::to_string(runs.size()), runs.size() == 1 ? "run" : "runs"},
          {clock_text(runtime_s), "of all together"},
          {clock_text(rank_s), "times ranks"},
          {human_count(tokens), "tokens trained on"}};
}

std::string sections_of_runs(const std::vector<RunSummary>& runs, const RunPageOptions& options) {
  return html_section("Runs", html_table(run_table(runs))) + plots_of_runs(runs, options) +
         configuration_section(runs) + texts_section(runs) +
         html_section("Scaling and waiting", html_plots(scaling_plot(runs) + waiting_plot(runs)));
}

std::string title_of(const std::vector<RunSummary>& runs) {
  if (runs.empty()) return "Benchmarks";
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(runs.size(), 4); ++i) names += (i == 0 ? "" : ", ") + runs[i].name;
  if (runs.size() > 4) names += ", …";
  return (runs.size() == 1 ? "Run " : "Runs ") + names;
}

}  // namespace

std::string run_page(const std::vector<RunSummary>& runs, const std::vector<BenchFile>& benches,
                     const RunPageOptions& options) {
  std::string body = runs.empty() ? "" : sections_of_runs(runs, options);
  for (const BenchFile& bench : benches) body += bench_section(bench);
  return html_page(title_of(runs), runs.empty() ? "" : runs.front().device,
                   runs.empty() ? std::vector<PageFact>() : facts_of_runs(runs), body,
                   runs.empty() ? "Written by tycho report. Hover over a mark to see its value."
                                : "Written by tycho report. Hover over a mark to see its run.");
}

}  // namespace tycho
