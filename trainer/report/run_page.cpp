// Draws runs over each other, and their speed over ranks.
#include "trainer/report/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/base/bytes.h"
#include "trainer/drawing/html_page.h"
#include "trainer/drawing/svg.h"
#include "trainer/metrics/format.h"
#include "trainer/report/run_table.h"

namespace tycho {
namespace {

constexpr int kWide = 1100, kHigh = 340, kSmall = 540;
constexpr size_t kMostPoints = 400;

using Points = std::vector<std::pair<double, double>>;

/// Means of neighbouring points, at most kMostPoints; those that are not finite are left out.
Points thinned_curve(const Curve& curve, const Scale& x, const Scale& y) {
  Points points;
  const size_t stride = std::max<size_t>(1, (curve.x.size() + kMostPoints - 1) / kMostPoints);
  for (size_t begin = 0; begin < curve.x.size(); begin += stride) {
    double sum = 0;
    size_t num = 0;
    const size_t end = std::min(begin + stride, curve.x.size());
    for (size_t i = begin; i < end; ++i)
      if (std::isfinite(curve.y[i])) sum += curve.y[i], ++num;
    if (num > 0) points.emplace_back(x.at(curve.x[end - 1]), y.at(sum / static_cast<double>(num)));
  }
  return points;
}

std::string run_color(size_t i, size_t num_runs) {
  return rank_color(num_runs < 2 ? 0 : static_cast<double>(i) / static_cast<double>(num_runs - 1));
}

/// One drawing with a curve of each run; "" when none has points. The highest hundredth may lie beyond the
/// frame, so that the first steps do not flatten the rest.
std::string curves_of(const std::vector<RunSummary>& runs, Curve RunSummary::*curve, const std::string& title,
                      const std::string& label, bool from_zero) {
  std::vector<double> values;
  double last_step = 1;
  for (const RunSummary& run : runs)
    for (size_t i = 0; i < (run.*curve).x.size(); ++i) {
      if (std::isfinite((run.*curve).y[i])) values.push_back((run.*curve).y[i]);
      last_step = std::max(last_step, (run.*curve).x[i]);
    }
  if (values.empty()) return "";
  std::sort(values.begin(), values.end());
  const double high = values[(values.size() - 1) * 99 / 100];
  const double low = from_zero ? 0 : values.front(), room = (high - low) * 0.05;
  const Scale x = Scale::linear(0, last_step * 1.02);
  const Scale y = Scale::linear(from_zero ? 0 : low - room, high + room);
  Drawing drawing(kWide, kHigh, title);
  drawing.x_axis(x, "step");
  drawing.y_axis(y, label);
  for (size_t i = 0; i < runs.size(); ++i) {
    const Points points = thinned_curve(runs[i].*curve, x, y);
    if (points.empty()) continue;
    drawing.line(points, run_color(i, runs.size()), 1.6, 0.9, runs[i].name);
    if (points.size() < 30)
      for (const auto& [at, height] : points)
        drawing.dot(at, height, run_color(i, runs.size()), runs[i].name, 2.5);
  }
  return drawing.svg();
}

/// Tokens per second over ranks, and what it would be if every rank were as fast as one of the smallest run.
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

/// The share of the steps' time that data was waited for, a bar for each run.
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

std::string sections_of_runs(const std::vector<RunSummary>& runs) {
  return html_section("Runs", html_table(run_table(runs))) +
         html_section("Training", curves_of(runs, &RunSummary::losses, "Loss", "loss", false) +
                                      curves_of(runs, &RunSummary::eval_losses, "Loss on held-out data",
                                                "eval.loss", false)) +
         html_section("Speed", curves_of(runs, &RunSummary::speeds, "Tokens per second", "tokens/s", true) +
                                   html_plots(scaling_plot(runs) + waiting_plot(runs)));
}

std::string title_of(const std::vector<RunSummary>& runs) {
  if (runs.empty()) return "Benchmarks";
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(runs.size(), 4); ++i) names += (i == 0 ? "" : ", ") + runs[i].name;
  if (runs.size() > 4) names += ", …";
  return (runs.size() == 1 ? "Run " : "Runs ") + names;
}

}  // namespace

std::string run_page(const std::vector<RunSummary>& runs, const std::vector<BenchFile>& benches) {
  std::string body = runs.empty() ? "" : sections_of_runs(runs);
  for (const BenchFile& bench : benches) body += bench_section(bench);
  return html_page(
      title_of(runs), runs.empty() ? "" : runs.front().device,
      runs.empty() ? std::vector<PageFact>() : facts_of_runs(runs), body,
      runs.empty()
          ? "Written by tycho report. Hover over a mark to see its value."
          : "Written by tycho report. Hover over a mark to see its run; the first run is the darkest.");
}

}  // namespace tycho
