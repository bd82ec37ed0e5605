// What the live view shows, as a pure function of what is known. Torch-free.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/metrics/shown_metrics.h"
#include "trainer/metrics/step_metrics.h"

namespace tycho {

/// A number of every step in bounded memory: when full, neighbours are averaged.
class History {
 public:
  /// Values that are not finite are left out.
  void add(double value);
  const std::vector<double>& values() const { return values_; }

 private:
  static constexpr size_t kCapacity = 256;  // even: halved by pairs
  std::vector<double> values_;
  int64_t stride_ = 1;  // steps per value
  int64_t num_pending_ = 0;
  double pending_sum_ = 0;
};

/// One of the lines that outlive a step.
struct Notice {
  std::string text;  // "" for none
  double age_s = 0;
};

struct ViewState {
  RunInfo run;
  StepMetrics now;  // of the last step; step 0 before the first
  double data_wait_share = 0;
  History losses;
  std::optional<double> eval_loss;  // of the last evaluation, over all sets
  std::vector<ShownMetric> shown;   // of log.show
  Notice checkpoint, evaluation, event, warning;
  double elapsed_s = 0;
  std::string ends_at;     // "14:32"; "" when unknown
  std::string end_reason;  // "" while the run goes on
};

struct ViewStyle {
  int width = 80;  // columns; no line is wider
  bool unicode = true;
  bool colour = true;
};

struct ViewLine {
  std::string text;  // with colour codes, without a newline
  int columns = 0;
};

/// The lines of the view, top to bottom. Text from outside is made harmless. No line is
/// wider than style.width; fields that do not fit go to a further line or are cut.
std::vector<ViewLine> draw_view(const ViewState& state, const ViewStyle& style);

}  // namespace tycho
