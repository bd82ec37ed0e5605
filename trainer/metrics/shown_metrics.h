// The numbers that log.show names, as far as they are known. Torch-free.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/metrics/step_metrics.h"

namespace tycho {

struct ShownMetric {
  std::string name;
  std::optional<double> value;  // newest value; nullopt before it was recorded
};

class ShownMetrics {
 public:
  explicit ShownMetrics(const std::vector<std::string>& names = {});

  /// Takes the numbers of a step by their names in metrics.jsonl: samples, tflops, data_wait_s, ...
  void step(const StepMetrics& metrics);
  /// Takes a number that a callback recorded.
  void record(const std::string& name, double value);
  /// Takes eval.loss and eval.NAME.loss from an event "eval".
  void event(const std::string& kind, const Json& facts);

  const std::vector<ShownMetric>& all() const { return metrics_; }
  /// Returns true when a value has arrived since the last call.
  bool take_changed();
  /// Returns the warning at the end of a run about names that nothing recorded; "" when there is none.
  std::string missing_text() const;

 private:
  std::vector<ShownMetric> metrics_;
  bool changed_ = false;
};

}  // namespace tycho
