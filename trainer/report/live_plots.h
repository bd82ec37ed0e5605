// Plots that a reader can zoom, smooth and filter: curves as JSON, and the scripts that draw them.
// Torch-free.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/metrics/curve.h"
#include "trainer/report/metric_plots.h"
#include "trainer/report/thin_curve.h"

namespace tycho {

/// A run of the plots.
struct PlottedRun {
  std::string name, folder, hint;   // `hint` is shown on its button; "" for the folder
  std::optional<size_t> parent_of;  // index of the fork that this run leads to
  std::optional<double> rank;       // from the best (0) to the worst (1), for a colour by rank
  Curve tokens, seconds;            // trained so far, over steps
};

struct PlottedCurve {
  size_t run = 0;  // index in LivePlots::runs
  std::string metric;
  ThinCurve curve;
};

struct LivePlots {
  bool watched = false;  // the page reloads itself when its file has another stamp
  std::string stamp;     // different each time that the file is written; digits
  double smoothing = 0;  // weight of the past that the page begins with
  std::vector<PlottedRun> runs;
  std::vector<MetricPlot> plots;
  std::vector<PlottedCurve> curves;
};

/// Most buckets of a curve.
inline constexpr int64_t kMostBuckets = 4096;
/// Most buckets of all curves of a page together, above 256 for each curve.
inline constexpr int64_t kMostPageBuckets = 400'000;

/// Returns the number of buckets that each of so many curves may have.
int64_t buckets_for(size_t num_curves);

/// Returns HTML: the data and the scripts, for the end of a page. `still` is HTML that is shown where scripts
/// do not run.
std::string live_plots(const LivePlots& plots, const std::string& still);

}  // namespace tycho
