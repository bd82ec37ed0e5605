// A number of a run over its steps, read back from metrics.jsonl. Torch-free.
#pragma once
#include <string>
#include <vector>

namespace tycho {

/// Points in the order of x. Plots leave out points that are not finite.
struct Curve {
  std::vector<double> x, y;
};

/// Reads a number of metrics.jsonl over steps, such as "loss". A step that a later attempt repeated counts
/// once, with the later value. Skips lines that do not parse. Throws Error (kUnusable) when the file cannot
/// be read or no record has the number.
Curve read_curve(const std::string& metrics_path, const std::string& name);

}  // namespace tycho
