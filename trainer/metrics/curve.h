// Numbers of a run over its steps, read back from metrics.jsonl, also while it grows. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/metrics/line_tail.h"

namespace tycho {

/// Points in the order of x. Plots leave out points that are not finite.
struct Curve {
  std::vector<double> x, y;
};

/// A number over steps that is gathered record by record.
class GatheredCurve {
 public:
  /// Adds a value, or replaces that of the same step. The first value of a later attempt removes those of its
  /// step and of later ones.
  void add(double step, double value, double attempt);
  const Curve& curve() const { return curve_; }

 private:
  Curve curve_;
  double attempt_ = 0;
};

/// Some numbers of a metrics.jsonl over steps, such as "loss". Each call reads what was added since the last
/// one. Skips lines that do not parse. Owned by one thread.
class CurveFile {
 public:
  CurveFile(std::string metrics_path, std::vector<std::string> names);
  /// Returns a curve for each name. Throws Error (kUnusable) when the file cannot be read or no record has
  /// one of the numbers.
  std::vector<Curve> read();

 private:
  std::string path_;
  std::vector<std::string> names_;
  LineTail file_;
  std::vector<GatheredCurve> curves_;  // of each name
};

/// Reads one number of metrics.jsonl once; see CurveFile.
Curve read_curve(const std::string& metrics_path, const std::string& name);

}  // namespace tycho
