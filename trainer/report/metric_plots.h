// Which metrics of runs share a plot, in which section it is, and in which unit. Torch-free.
#pragma once
#include <set>
#include <string>
#include <vector>

namespace tycho {

/// A plot of metrics of one kind and unit.
struct MetricPlot {
  std::string section, title;
  std::string unit;  // "nats per token", "s", "bytes"; "" for a number without a known unit
  bool from_zero = false, wide = false;
  std::vector<std::string> metrics;  // layer2 before layer10
};

/// Returns the plots of the metrics, the most wanted first. Metrics whose names differ in numbers only
/// ("grad_norm/layer3") share a plot. The metrics `first` have a section of their own at the top.
std::vector<MetricPlot> metric_plots(const std::set<std::string>& metrics,
                                     const std::set<std::string>& first = {});

}  // namespace tycho
