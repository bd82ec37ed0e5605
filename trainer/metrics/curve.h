// A number of a run over its steps, read back from metrics.jsonl. Torch-free.
#pragma once
#include <string>
#include <vector>

namespace tycho {

/// Points in the order of x. Those that are not finite are left out of a drawing.
struct Curve {
  std::vector<double> x, y;
};

/// A number of metrics.jsonl over steps, "loss" for one. Steps that a later attempt did again are that
/// attempt's. Lines that do not parse are skipped. Throws Error (kUnusable) when the file cannot be read or
/// no record has the number.
Curve read_curve(const std::string& metrics_path, const std::string& name);

}  // namespace tycho
