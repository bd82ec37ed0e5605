// Curves drawn with characters: a plot with axes, and a line of one row. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/metrics/curve.h"

namespace tycho {

struct PlotOptions {
  int width = 72;       // columns of the whole drawing, labels included; at least 24
  int height = 14;      // rows of the curve; at least 3
  bool unicode = true;  // Braille dots and box lines, or ASCII
  std::string title;    // a line above
  std::string x_label;  // below, at the right
};

/// Returns the curve as lines that end in '
/// ', with labelled ticks on both axes. Points that share a column are averaged. A curve without finite
/// points gives one line that says so.
std::string plot(const Curve& curve, const PlotOptions& options);

/// Returns `y` in one row of `width` columns: 4 levels in Braille, 3 in ASCII; "" when there is nothing to
/// draw.
std::string sparkline(const std::vector<double>& y, int width, bool unicode);

}  // namespace tycho
