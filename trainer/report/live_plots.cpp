// Writes curves as JSON in few digits.
#include "trainer/report/live_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/base/json.h"
#include "trainer/report/page_files.h"

namespace tycho {
namespace {

std::string text_json(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Returns a list of numbers in `digits` significant digits; null for those that are not finite.
std::string list_json(const std::vector<double>& values, int digits) {
  fmt::memory_buffer text;
  text.push_back('[');
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text.push_back(',');
    if (std::isfinite(values[i]))
      fmt::format_to(std::back_inserter(text), "{:.{}g}", values[i], digits);
    else
      text.append(std::string_view("null"));
  }
  text.push_back(']');
  return fmt::to_string(text);
}

/// Returns steps as "progressions", [first, distance, count] each, where that is shorter than the list "x".
std::string steps_json(const std::vector<double>& steps) {
  std::vector<double> progressions;
  for (size_t begin = 0; begin < steps.size();) {
    size_t end = begin + 1;
    const double distance = end < steps.size() ? steps[end] - steps[begin] : 0;
    while (end < steps.size() && steps[end] - steps[end - 1] == distance) ++end;
    for (const double number : {steps[begin], distance, static_cast<double>(end - begin)})
      progressions.push_back(number);
    begin = end;
  }
  if (progressions.size() >= steps.size()) return "\"x\":" + list_json(steps, 15);
  std::string text = "\"progressions\":[";
  for (size_t i = 0; i < progressions.size(); i += 3)
    text += fmt::format("{}[{:.15g},{:.15g},{}]", i > 0 ? "," : "", progressions[i], progressions[i + 1],
                        progressions[i + 2]);
  return text + "]";
}

std::string curve_json(const PlottedCurve& plotted) {
  constexpr int kDigits = 6;
  const ThinCurve& curve = plotted.curve;
  std::string text = fmt::format("{{\"run\":{},\"metric\":{},\"bucket\":{},{},\"y\":{}", plotted.run,
                                 text_json(plotted.metric), curve.bucket, steps_json(curve.x),
                                 list_json(curve.mean, kDigits));
  if (curve.bucket > 1)
    text +=
        fmt::format(",\"low\":{},\"high\":{}", list_json(curve.low, kDigits), list_json(curve.high, kDigits));
  if (curve.num_not_finite > 0) {
    text += fmt::format(",\"num_not_finite\":{},\"not_finite\":[", curve.num_not_finite);
    for (const auto& [x, words] : curve.not_finite)
      text +=
          fmt::format("{}[{:.15g},\"{}\"]", &words == &curve.not_finite.front().second ? "" : ",", x, words);
    text += "]";
  }
  return text + "}";
}

/// Returns the numbers at every so many points of a curve, the last one included.
std::vector<double> some_of(const std::vector<double>& values, size_t most) {
  const size_t stride = std::max<size_t>(1, (values.size() + most - 1) / most);
  std::vector<double> some;
  for (size_t i = 0; i < values.size(); i += stride) some.push_back(values[i]);
  if (!values.empty() && (values.size() - 1) % stride != 0) some.push_back(values.back());
  return some;
}

std::string run_json(const PlottedRun& run) {
  constexpr size_t kMostKnots = 1024;
  std::vector<double> seconds = some_of(run.seconds.y, kMostKnots);
  for (double& value : seconds) value = std::round(value * 100) / 100;
  std::string text = fmt::format(
      "{{\"name\":{},\"folder\":{},\"clock\":{{\"step\":{},\"tokens\":{},\"seconds\":{}}}",
      text_json(run.name), text_json(run.folder), list_json(some_of(run.seconds.x, kMostKnots), 15),
      list_json(some_of(run.tokens.y, kMostKnots), 15), list_json(seconds, 12));
  if (!run.hint.empty()) text += ",\"hint\":" + text_json(run.hint);
  if (run.parent_of) text += fmt::format(",\"parent_of\":{}", *run.parent_of);
  if (run.rank) text += fmt::format(",\"share\":{:.4g}", *run.rank);
  return text + "}";
}

std::string plot_json(const MetricPlot& plot) {
  std::string metrics;
  for (const std::string& metric : plot.metrics) metrics += (metrics.empty() ? "" : ",") + text_json(metric);
  return fmt::format(
      "{{\"section\":{},\"title\":{},\"unit\":{},\"from_zero\":{},\"wide\":{},\"metrics\":[{}]}}",
      text_json(plot.section), text_json(plot.title), text_json(plot.unit), plot.from_zero, plot.wide,
      metrics);
}

/// Returns a sentence about how curves are thinned.
std::string rule_of(const LivePlots& plots) {
  int64_t most = 1;
  for (const PlottedCurve& plotted : plots.curves) most = std::max(most, plotted.curve.bucket);
  const std::string marks =
      " Triangles at the frame mark values beyond it, crosses mark values that are infinite or NaN.";
  if (most == 1) return "Every recorded value is on this page." + marks;
  return fmt::format(
             "Long curves are in buckets of a power of two of adjacent records, {} at most: the line is the "
             "mean of each bucket, the shade reaches from its least to its greatest value, so that no spike "
             "is "
             "lost.",
             most) +
         marks;
}

template <class T, class Write>
std::string joined(const std::vector<T>& items, Write write) {
  std::string text;
  for (const T& item : items) text += (text.empty() ? "" : ",\n") + write(item);
  return text;
}

std::string data_json(const LivePlots& plots) {
  std::string text = fmt::format(
      "{{\"watched\":{},\"stamp\":{},\"smoothing\":{},\"rule\":{},\n\"runs\":[{}],\n\"plots\":[{}],"
      "\n\"curves\":[{}]}}",
      plots.watched, text_json(plots.stamp), plots.smoothing, text_json(rule_of(plots)),
      joined(plots.runs, run_json), joined(plots.plots, plot_json), joined(plots.curves, curve_json));
  for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at))
    text.replace(at, 1, "\\u003c");  // nothing in the data can end the element that it is in
  return text;
}

std::string_view file_text(std::string_view name) {
  for (const PageFile& file : page_files())
    if (file.name == name) return file.text;
  return "";
}

}  // namespace

int64_t buckets_for(size_t num_curves) {
  return std::clamp<int64_t>(kMostPageBuckets / std::max<int64_t>(1, static_cast<int64_t>(num_curves)), 256,
                             kMostBuckets);
}

std::string live_plots(const LivePlots& plots, const std::string& still) {
  if (plots.curves.empty()) return "";
  // A page that looks whether its file is a new one loads it this far.
  std::string text = fmt::format(
      "<script>if (location.hash === \"#probe\") {{ parent.postMessage({{tycho: {}}}, \"*\"); window.stop(); "
      "}}"
      "</script>\n",
      text_json(plots.stamp));
  text += fmt::format("<div id=\"live\"></div>\n<div id=\"still\">{}</div>\n<style>{}</style>\n", still,
                      file_text("uPlot.min.css"));
  text += fmt::format("<script type=\"application/json\" id=\"page-data\">{}</script>\n", data_json(plots));
  text += fmt::format("<script>\n/* uPlot 1.6.32\n{}*/\n{}</script>\n<script>(() => {{\n\"use strict\";\n",
                      file_text("uPlot.LICENSE"), file_text("uPlot.min.js"));
  for (const char* name : {"text.js", "data.js", "watch.js", "plots.js", "controls.js"})
    text += file_text(name);
  return text + "})();</script>\n";
}

}  // namespace tycho
