// Curves drawn with characters: a plot with axes, and a line of one row. Torch-free.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "trainer/metrics/curve.h"

namespace tycho {

struct PlotOptions {
  int width = 72;       // columns of the whole drawing, labels included; at least 24
  int height = 14;      // rows of the curves; at least 3
  bool unicode = true;  // Braille dots and box lines, or ASCII
  std::string title;    // a line above
  std::string x_label;  // below, at the right
  bool colour = false;  // several curves in the colours of a terminal, beside their marks
};

/// A curve, and what the legend calls it.
struct NamedCurve {
  std::string name;
  Curve curve;
};

inline constexpr size_t kMostCurves = 8;  // as many as there are marks

/// Returns the curves, on one scale, as lines that end in '\n', with labelled ticks on both axes. Each of
/// several curves has a mark of its own, which a legend above explains; the name of a single one is the title
/// if there is none. Points that share a column are averaged. Curves without finite points give one line that
/// says so. Control characters of names do not get through. Throws Error (kUsage) for more than kMostCurves,
/// and for a name that two have.
std::string overlay(const std::vector<NamedCurve>& curves, const PlotOptions& options);
/// Returns one curve as `overlay` draws it.
std::string plot(const Curve& curve, const PlotOptions& options);

/// Returns true when stdout may have colours: it is a terminal that supports them, and NO_COLOR is not set.
bool prints_colours();

/// Returns `y` in one row of `width` columns: 4 levels in Braille, 3 in ASCII; "" when there is nothing to
/// draw.
std::string sparkline(const std::vector<double>& y, int width, bool unicode);

}  // namespace tycho
