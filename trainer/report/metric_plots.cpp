// Sorts metrics into plots by their names.
#include "trainer/report/metric_plots.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string_view>

#include "trainer/metrics/format.h"

namespace tycho {
namespace {

constexpr const char* kLoss = "Loss";
constexpr const char* kGradients = "Learning rate and gradients";
constexpr const char* kSpeed = "Speed";
constexpr const char* kMachine = "Memory and machine";
constexpr const char* kTasks = "Tasks";
constexpr const char* kOther = "Other metrics";
constexpr const char* kFirst = "Chosen metrics";

/// A plot of metrics that every run has.
struct KnownPlot {
  const char *section, *title, *unit;
  bool from_zero, wide;
  std::vector<std::string> metrics;
};

const std::vector<KnownPlot>& known_plots() {
  static const std::vector<KnownPlot> kPlots = {
      {kLoss, "Loss", "nats per token", false, true, {"loss", "eval.loss", "loss_ema"}},
      {kLoss, "Perplexity on held-out data", "", false, false, {"eval.perplexity"}},
      {kLoss, "Held-out text", "bits per byte", false, false, {"eval.bits_per_byte"}},
      {kGradients, "Learning rate", "", true, false, {"lr"}},
      {kGradients, "Norm of the gradient, before clipping", "", true, false, {"grad_norm"}},
      {kSpeed, "Tokens per second", "tokens/s", true, false, {"tokens_per_s"}},
      {kSpeed, "Model FLOPs utilisation", "%", true, false, {"mfu", "mfu_causal"}},
      {kSpeed, "Time of a step", "s", true, false, {"step_s", "data_wait_s", "comm_wait_s", "comm_s"}},
      {kSpeed, "Computation", "TFLOP/s", true, false, {"tflops", "tflops_causal"}},
      {kMachine, "Memory of the device, peak", "bytes", true, false, {"memory_bytes"}},
      {kSpeed, "Estimated time left", "s", true, false, {"eta_s"}},
  };
  return kPlots;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Returns the name with "*" for each number in it, and for the data set of an evaluation.
std::string family_of(const std::string& metric) {
  const size_t dot = metric.rfind('.');
  if (metric.starts_with("eval.") && dot > 4 && metric.find('/') == std::string::npos)
    return "eval.*" + metric.substr(dot);
  if (!has(metric, "/") && !has(metric, ".rank_")) return metric;
  std::string family;
  for (const char c : metric) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit)
      family += c;
    else if (family.empty() || family.back() != '*')
      family += '*';
  }
  return family;
}

std::string unit_of(const std::string& metric) {
  if (metric.ends_with("tokens_per_s")) return "tokens/s";
  if (metric.ends_with("_per_s")) return "per s";
  if (metric.ends_with("_s")) return "s";
  if (metric.ends_with("_bytes")) return "bytes";
  if (metric.ends_with("_share") || has(metric, "accuracy")) return "%";
  if (metric.starts_with("eval.") && metric.ends_with(".loss")) return "nats per token";
  if (metric.starts_with("eval.") && metric.ends_with(".bits_per_byte")) return "bits per byte";
  return "";
}

std::string section_of(const std::string& metric) {
  if (metric.starts_with("eval.") &&
      (metric.ends_with(".loss") || metric.ends_with(".perplexity") || metric.ends_with(".bits_per_byte")))
    return kLoss;
  if (has(metric, "accuracy")) return kTasks;
  if (metric.starts_with("grad_norm/") || metric.starts_with("lr/")) return kGradients;
  if (metric.starts_with("speed/")) return kSpeed;
  if (metric.starts_with("machine/") || metric.starts_with("memory/")) return kMachine;
  return kOther;
}

/// Compares names so that numbers in them count by their value.
bool natural_less(const std::string& a, const std::string& b) {
  size_t i = 0, k = 0;
  const auto digit = [](const std::string& text, size_t at) {
    return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
  };
  while (i < a.size() && k < b.size()) {
    if (digit(a, i) && digit(b, k)) {
      size_t a_end = i, b_end = k;
      while (digit(a, a_end)) ++a_end;
      while (digit(b, b_end)) ++b_end;
      const std::string x = a.substr(i, a_end - i), y = b.substr(k, b_end - k);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      i = a_end, k = b_end;
    } else if (a[i] != b[k]) {
      return a[i] < b[k];
    } else {
      ++i, ++k;
    }
  }
  return a.size() - i < b.size() - k;
}

/// Returns the plots of metrics that are not known, one for each family.
std::vector<MetricPlot> plots_by_name(const std::set<std::string>& metrics, const char* section) {
  std::vector<MetricPlot> plots;
  std::vector<std::string> families;
  for (const std::string& metric : metrics) {
    const std::string family = family_of(metric);
    const auto found = std::find(families.begin(), families.end(), family);
    if (found != families.end()) {
      plots[static_cast<size_t>(found - families.begin())].metrics.push_back(metric);
      continue;
    }
    families.push_back(family);
    plots.push_back({section != nullptr ? section : section_of(metric),
                     family,
                     unit_of(metric),
                     false,
                     section != nullptr,
                     {metric}});
  }
  for (MetricPlot& plot : plots) {
    std::sort(plot.metrics.begin(), plot.metrics.end(), natural_less);
    plot.title = printable(plot.metrics.size() == 1 ? plot.metrics.front() : plot.title, true);
  }
  return plots;
}

}  // namespace

std::vector<MetricPlot> metric_plots(const std::set<std::string>& metrics,
                                     const std::set<std::string>& first) {
  std::vector<MetricPlot> plots = plots_by_name(first, kFirst);
  std::set<std::string> left;
  std::set_difference(metrics.begin(), metrics.end(), first.begin(), first.end(),
                      std::inserter(left, left.end()));
  std::vector<MetricPlot> others;
  for (const KnownPlot& known : known_plots()) {
    MetricPlot plot = {known.section, known.title, known.unit, known.from_zero, known.wide, {}};
    for (const std::string& metric : known.metrics)
      if (left.erase(metric) > 0) plot.metrics.push_back(metric);
    if (!plot.metrics.empty()) others.push_back(plot);
  }
  for (MetricPlot& plot : plots_by_name(left, nullptr)) others.push_back(std::move(plot));
  for (const char* section : {kLoss, kTasks, kGradients, kSpeed, kMachine, kOther})
    std::copy_if(others.begin(), others.end(), std::back_inserter(plots),
                 [&](const MetricPlot& plot) { return plot.section == section; });
  return plots;
}

}  // namespace tycho
