// The lines of the live view, as a pure function of the run's state. Torch-free.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/metrics/shown_metrics.h"
#include "trainer/metrics/step_metrics.h"

namespace tycho {

/// Values of every step in bounded memory: when full, neighbours are averaged.
class History {
 public:
  /// Ignores values that are not finite.
  void add(double value);
  const std::vector<double>& values() const { return values_; }

 private:
  static constexpr size_t kCapacity = 256;  // even, because it is halved by pairs
  std::vector<double> values_;
  int64_t stride_ = 1;  // steps per value
  int64_t num_pending_ = 0;
  double pending_sum_ = 0;
};

/// A line of the view that stays over several steps.
struct Notice {
  std::string text;  // "" for none
  double age_s = 0;
};

struct ViewState {
  RunInfo run;
  StepMetrics now;  // of the last step; step 0 before the first
  double data_wait_share = 0;
  History losses;
  std::optional<double> eval_loss;  // last evaluation, over all sets
  std::vector<ShownMetric> shown;   // metrics of log.show
  Notice checkpoint, evaluation, event, warning;
  double elapsed_s = 0;
  std::string ends_at;     // "14:32"; "" when unknown
  std::string end_reason;  // "" while the run continues
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

/// Returns the lines of the view, top to bottom, with text from outside made printable. No line is wider than
/// style.width; fields that do not fit move to a further line or are cut.
std::vector<ViewLine> draw_view(const ViewState& state, const ViewStyle& style);

}  // namespace tycho
