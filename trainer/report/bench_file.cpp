// The keys of each benchmark's JSON, and how they are drawn.
#include "trainer/report/bench_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/metrics/format.h"
#include "trainer/report/html_page.h"
#include "trainer/report/svg.h"

namespace tycho {
namespace {

constexpr int kPlotWide = 540, kPlotHigh = 340;

/// Returns the form that training uses, for an operation that has both.
const Json& used_form(const Json& timing) {
  return timing.at(timing.at("in_place").is_null() ? "out_of_place" : "in_place");
}

BenchFile comm_file(const Json& json) {
  BenchFile made{fmt::format("Collectives of {} ranks", json.at("ranks").get<int64_t>()),
                 {{"verb", "axis", "ranks", "size", "time", "bus bandwidth", "wrong"}},
                 {}};
  for (const Json& timing : json.at("timings")) {
    const auto axis = timing.at("axis").get<std::string>(), op = timing.at("verb").get<std::string>();
    const Json& form = used_form(timing);
    const double bytes = timing.at("num_bytes"), rate = form.at("bus_bytes_per_s");
    made.table.push_back({op, axis, timing.at("group_size").dump(), human_bytes(bytes),
                          fmt::format("{:.4g} ms", 1e3 * form.at("seconds").get<double>()),
                          human_bytes(rate) + "/s", form.at("num_wrong").dump()});
    if (timing.at("count") == 0) continue;  // a barrier moves nothing
    const std::string title = "Bus bandwidth along " + axis;
    if (made.plots.empty() || made.plots.back().title != title)
      made.plots.push_back({.title = title, .label = "GB/s", .lines = {}, .bars = {}});
    std::vector<BenchLine>& lines = made.plots.back().lines;
    if (lines.empty() || lines.back().name != op) lines.push_back({op, {}, {}});
    lines.back().bytes.push_back(bytes);
    lines.back().values.push_back(rate / 1e9);
  }
  return made;
}

BenchFile storage_file(const Json& json) {
  BenchFile made{fmt::format("Storage: {}, {}", json.at("folder").get<std::string>(),
                             json.at("file_system").get<std::string>()),
                 {{"what", "works", "found"}},
                 {{.title = "Writing and reading", .label = "MB/s", .lines = {}, .bars = {}}}};
  for (const Json& fact : json.at("facts"))
    made.table.push_back({fact.at("name"), fact.at("support"), fact.at("found")});
  for (const Json& rate : json.at("rates"))
    made.plots[0].bars.emplace_back(rate.at("what"), rate.at("bytes_per_s").get<double>() / 1e6);
  made.table.push_back(
      {"fsync of 4 KiB", "", fmt::format("{:.2f} ms", 1e3 * json.at("fsync_s").get<double>())});
  made.table.push_back({"small files", "", fmt::format("{:.0f}/s", json.at("files_per_s").get<double>())});
  return made;
}

BenchFile step_file(const Json& json) {
  BenchFile made{fmt::format("A step on {}, ranks: {}", json.at("device").get<std::string>(),
                             json.at("num_ranks").get<int64_t>()),
                 {{"measured", ""}},
                 {{.title = "Where its time goes", .label = "ms", .lines = {}, .bars = {}}}};
  const auto seconds = [&](const char* key) { return fmt::format("{:.4g} s", json.at(key).get<double>()); };
  made.table.push_back({"step, median", seconds("median_s")});
  made.table.push_back({"fastest, slowest", seconds("fastest_s") + ", " + seconds("slowest_s")});
  made.table.push_back({"tokens/s", human_count(json.at("tokens_per_s"))});
  made.table.push_back({"MFU", json.at("mfu").is_null() ? "unknown" : percent_text(json.at("mfu"))});
  made.table.push_back({"memory of a rank", human_bytes(json.at("memory_bytes"))});
  for (const Json& part : json.at("parts"))
    made.plots[0].bars.emplace_back(part.at("part"), 1e3 * part.at("seconds").get<double>());
  return made;
}

BenchFile data_file(const Json& json) {
  return {"Training data",
          {{"measured", ""},
           {"tokens/s", human_count(json.at("tokens_per_s"))},
           {"tokens/s of one core", human_count(json.at("tokens_per_cpu_s"))},
           {"until the first batch", fmt::format("{:.2f} s", json.at("open_s").get<double>())},
           {"longest wait", fmt::format("{:.1f} ms", 1e3 * json.at("longest_wait_s").get<double>())}},
          {}};
}

BenchFile file_of(const Json& json) {
  if (json.contains("timings")) return comm_file(json);
  if (json.contains("rates")) return storage_file(json);
  if (json.contains("parts")) return step_file(json);
  return data_file(json);
}

std::string color_of(size_t i, size_t count) {
  return rank_color(count < 2 ? 0.3 : static_cast<double>(i) / static_cast<double>(count - 1));
}

std::string lines_drawing(const BenchPlot& plot) {
  double least = INFINITY, most = 0, high = 0;
  for (const BenchLine& line : plot.lines)
    for (size_t i = 0; i < line.bytes.size(); ++i) {
      least = std::min(least, line.bytes[i]), most = std::max(most, line.bytes[i]);
      high = std::max(high, line.values[i]);
    }
  const Scale x = most > least ? Scale::logarithmic(least, most).padded() : Scale::linear(0, 2 * most);
  const Scale y = Scale::linear(0, high > 0 ? 1.08 * high : 1);
  Drawing drawing(kPlotWide, kPlotHigh, plot.title);
  drawing.x_axis(x, "bytes");
  drawing.y_axis(y, plot.label);
  for (size_t l = 0; l < plot.lines.size(); ++l) {
    const BenchLine& line = plot.lines[l];
    std::vector<std::pair<double, double>> points;
    for (size_t i = 0; i < line.bytes.size(); ++i)
      points.emplace_back(x.at(line.bytes[i]), y.at(line.values[i]));
    drawing.line(points, color_of(l, plot.lines.size()), 1.8, 1, line.name);
    if (!points.empty()) drawing.text(points.back().first, points.back().second + 0.03, line.name, "end");
    for (size_t i = 0; i < points.size(); ++i)
      drawing.dot(points[i].first, points[i].second, color_of(l, plot.lines.size()),
                  fmt::format("{} of {}: {:.3g} {}", line.name, human_bytes(line.bytes[i]), line.values[i],
                              plot.label));
  }
  return drawing.svg();
}

std::string bars_drawing(const BenchPlot& plot) {
  double high = 0;
  for (const auto& [name, value] : plot.bars) high = std::max(high, value);
  const Scale y = Scale::linear(0, high > 0 ? 1.15 * high : 1);
  Drawing drawing(2 * kPlotWide, kPlotHigh, plot.title);
  drawing.y_axis(y, plot.label);
  const auto count = static_cast<double>(plot.bars.size());
  for (size_t i = 0; i < plot.bars.size(); ++i) {
    const auto& [name, value] = plot.bars[i];
    const double left = (static_cast<double>(i) + 0.2) / count;
    drawing.bar(left, 0.6 / count, y.at(value), rank_color(0.3),
                fmt::format("{}: {:.4g} {}", name, value, plot.label));
    drawing.text(left + 0.3 / count, -0.07, name);
  }
  return drawing.svg();
}

}  // namespace

BenchFile read_bench_file(const std::string& path) {
  const std::string wanted = "what tycho bench comm, storage, step or data prints with --json";
  try {
    BenchFile made = file_of(parse_json(read_file(path), path));
    made.title += " (" + path + ")";
    return made;
  } catch (const Json::exception& error) {
    fail(ExitCode::kUnusable, "[report] {}: expected {}, got another file ({})", path, wanted, error.what());
  }
}

std::string bench_section(const BenchFile& bench) {
  std::string drawings;
  for (const BenchPlot& plot : bench.plots) {
    if (!plot.lines.empty()) drawings += lines_drawing(plot);
    if (!plot.bars.empty()) drawings += bars_drawing(plot);
  }
  return html_section(bench.title, html_plots(drawings) + html_table(bench.table));
}

}  // namespace tycho
