// Draws curves as dots: a cell is 2 x 4 of them in Braille, 1 x 3 in ASCII.
#include "trainer/metrics/plot.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/reporter.h"

namespace tycho {
namespace {

/// Differences are computed from halves or parts, since those of numbers near 1e308 are infinite.
struct Range {
  double low = 0, high = 0;

  double half_width() const { return high / 2 - low / 2; }
  /// Returns the position of a value from 0 to 1, clamped against rounding; `middle` when the range is a
  /// single value.
  double share(double value, double middle) const {
    return half_width() > 0 ? std::clamp((value / 2 - low / 2) / half_width(), 0.0, 1.0) : middle;
  }
};

constexpr const char* kMarks[kMostCurves] = {"●", "▲", "■", "◆", "○", "△", "□", "◇"};
constexpr char kAsciiMarks[] = "ox*#@%&$";
constexpr int kColours[kMostCurves] = {36, 33, 35, 32, 31, 34, 96, 93};  // of ECMA-48's "select graphic"

std::string mark_of(size_t curve, bool unicode) {
  return unicode ? kMarks[curve] : std::string(1, kAsciiMarks[curve]);
}

std::string colour_on(size_t curve) { return fmt::format("\x1b[{}m", kColours[curve]); }
constexpr const char* kColourOff = "\x1b[0m";

/// A grid of dots, row 0 on top, which several curves share.
class Canvas {
 public:
  Canvas(int columns, int rows, bool unicode)
      : columns_(columns), rows_(rows), unicode_(unicode), cells_(static_cast<size_t>(columns * rows)) {}

  int columns() const { return columns_; }
  int width() const { return columns_ * dots_x(); }
  int height() const { return rows_ * dots_y(); }
  /// Says whose dots and marks the next ones are.
  void begin_curve(size_t curve) { curve_ = curve; }

  void dot(int x, int y) {
    constexpr uint8_t kBraille[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    const int in_x = x % dots_x(), in_y = y % dots_y();
    Cell& cell = cell_at(x, y);
    cell.dots |= unicode_ ? kBraille[in_y][in_x] : static_cast<uint8_t>(1 << in_y);
    cell.curve = curve_;
  }

  /// Puts the curve's mark in place of the dots around a dot.
  void mark(int x, int y) {
    Cell& cell = cell_at(x, y);
    cell.is_mark = true;
    cell.curve = curve_;
  }

  /// Joins (x - 1, y_from), which is drawn, with (x, y_to): each column gets half of the climb.
  void join(int x, int y_from, int y_to) {
    const int middle = (y_from + y_to) / 2, step = y_to < y_from ? -1 : 1;
    for (int y = y_from; y != middle; y += step) dot(x - 1, y + step);
    for (int y = y_to; y != middle; y -= step) dot(x, y);
    dot(x, y_to);
  }

  /// Returns a row without the blanks at its end.
  std::string row(int index, bool colour) const {
    std::string out, blanks;
    std::optional<size_t> begun;  // the curve whose colour is on
    for (int column = 0; column < columns_; ++column) {
      const Cell& cell = cells_[static_cast<size_t>(index * columns_ + column)];
      if (cell.dots == 0) {
        blanks += ' ';
        continue;
      }
      out += std::exchange(blanks, "");
      if (colour && begun != cell.curve) out += colour_on(cell.curve);
      begun = cell.curve;
      out += cell.is_mark ? mark_of(cell.curve, unicode_)
             : unicode_   ? braille(cell.dots)
                          : std::string(1, ascii(cell.dots));
    }
    return out + (colour && begun ? kColourOff : "");
  }

 private:
  struct Cell {
    uint8_t dots = 0;
    bool is_mark = false;
    size_t curve = 0;  // the one that was drawn last
  };

  int dots_x() const { return unicode_ ? 2 : 1; }
  int dots_y() const { return unicode_ ? 4 : 3; }
  Cell& cell_at(int x, int y) { return cells_[static_cast<size_t>(y / dots_y() * columns_ + x / dots_x())]; }

  static std::string braille(uint8_t dots) {
    const char bytes[] = {'\xe2', static_cast<char>(0xa0 + (dots >> 6)),
                          static_cast<char>(0x80 + (dots & 0x3f))};
    return std::string(bytes, 3);
  }
  static char ascii(uint8_t dots) {
    switch (dots) {
      case 1: return '\'';
      case 2: return '-';
      case 4: return '.';
      default: return '|';
    }
  }

  int columns_, rows_;
  bool unicode_;
  std::vector<Cell> cells_;
  size_t curve_ = 0;
};

Range range_of(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {*low, *high};
}

Curve finite_points(const Curve& curve) {
  Curve out;
  for (size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
    if (!std::isfinite(curve.x[i]) || !std::isfinite(curve.y[i])) continue;
    out.x.push_back(curve.x[i]);
    out.y.push_back(curve.y[i]);
  }
  return out;
}

/// Returns the mean height per dot column; NaN in columns without points.
std::vector<double> column_means(const Curve& curve, Range x, int width) {
  std::vector<double> means(static_cast<size_t>(width), std::numeric_limits<double>::quiet_NaN()),
      counts(static_cast<size_t>(width), 0);
  for (size_t i = 0; i < curve.x.size(); ++i) {
    const auto column = static_cast<size_t>(std::lround(x.share(curve.x[i], 0) * (width - 1)));
    const double count = ++counts[column];
    double& mean = means[column];
    mean = count == 1 ? curve.y[i] : mean + (curve.y[i] / count - mean / count);
  }
  return means;
}

/// Draws column means as a line; columns without points are interpolated. Returns the line's row in each
/// column, -1 where it is not.
std::vector<int> draw(Canvas& canvas, const std::vector<double>& means, Range y) {
  const auto dot_row = [&](double value) {
    return static_cast<int>(std::lround((1 - y.share(value, 0.5)) * (canvas.height() - 1)));
  };
  std::vector<int> rows(means.size(), -1);
  int last = -1;
  for (int x = 0; x < canvas.width(); ++x) {
    if (std::isnan(means[static_cast<size_t>(x)])) continue;
    const double value = means[static_cast<size_t>(x)];
    rows[static_cast<size_t>(x)] = dot_row(value);
    if (last < 0) canvas.dot(x, dot_row(value));
    for (int between = last + 1; last >= 0 && between <= x; ++between) {
      const double from = means[static_cast<size_t>(last)], slope = value / (x - last) - from / (x - last);
      const int row = dot_row(from + slope * (between - last));
      canvas.join(between, dot_row(from + slope * (between - 1 - last)), row);
      rows[static_cast<size_t>(between)] = row;
    }
    last = x;
  }
  return rows;
}

/// Puts a mark on a curve every 16 columns, at least one. Those of different curves are in different columns,
/// so that curves that coincide show both.
void mark(Canvas& canvas, const std::vector<int>& rows, size_t curve, size_t num_curves) {
  const size_t dots = 16 * rows.size() / static_cast<size_t>(canvas.columns());
  bool is_marked = false;
  for (size_t x = dots * (2 * curve + 1) / (2 * num_curves); x < rows.size(); x += dots) {
    if (rows[x] < 0) continue;
    canvas.mark(static_cast<int>(x), rows[x]);
    is_marked = true;
  }
  for (size_t x = rows.size(); !is_marked && x-- > 0;) {
    if (rows[x] < 0) continue;
    canvas.mark(static_cast<int>(x), rows[x]);
    is_marked = true;
  }
}

/// Returns the distance of ticks: 1, 2 or 5 times a power of ten, so that about `count` fit.
double tick_distance(Range range, int count) {
  const double rough = range.half_width() / std::max(1, count) * 2;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.999) return factor * power;
  }
  return 10 * power;
}

struct Tick {
  double value;
  std::string label;
};

/// Returns the ticks of a range. `least` is the smallest distance, such as 1 for steps; 0 for any.
std::vector<Tick> ticks_of(Range range, int count, double least = 0) {
  // Below the precision of the labels there is one value; ticks closer than doubles are would never end.
  const double size = std::max(std::abs(range.low), std::abs(range.high));
  if (range.half_width() <= 0.5e-9 * size) return {{range.low, short_text(range.low)}};
  double distance = std::max(least, tick_distance(range, count));
  // One tick tells no scale: a short axis gets a second one.
  for (int more = count;
       distance > least && std::floor(range.high / distance) - std::ceil(range.low / distance) < 1;) {
    distance = std::max(least, tick_distance(range, ++more));
  }
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(distance) + 1e-9)));
  const bool wide = size >= 1e6 || decimals > 5;
  std::vector<Tick> ticks;
  for (double at = std::ceil(range.low / distance - 1e-9); at * distance - distance * 1e-9 <= range.high;
       ++at) {
    const double value = at * distance == 0 ? 0 : at * distance;
    ticks.push_back({value, wide ? short_text(value) : fmt::format("{:.{}f}", value, decimals)});
  }
  return ticks;
}

/// Returns the x axis and its labels, without labels that would overlap.
std::string x_axis(Range x, int columns, int margin, const PlotOptions& options) {
  std::string axis(static_cast<size_t>(columns), '-');
  std::string labels(static_cast<size_t>(margin + 1 + columns), ' ');
  const size_t room = labels.size() - (options.x_label.empty() ? 0 : options.x_label.size() + 2);
  size_t free_from = 0;
  const double least = options.x_label == "step" ? 1 : 0;  // there is no step 1.5
  for (const Tick& tick : ticks_of(x, columns / 9, least)) {
    const auto column = static_cast<size_t>(std::lround(x.share(tick.value, 0) * (columns - 1)));
    axis[column] = '+';
    const size_t center = static_cast<size_t>(margin) + 1 + column;
    const size_t begin = center - std::min(center, tick.label.size() / 2);
    if (begin < free_from || begin + tick.label.size() > room) continue;
    labels.replace(begin, tick.label.size(), tick.label);
    free_from = begin + tick.label.size() + 2;
  }
  if (!options.x_label.empty())
    labels.replace(labels.size() - options.x_label.size(), std::string::npos, options.x_label);
  labels.erase(labels.find_last_not_of(' ') + 1);
  std::string line;
  for (const char c : axis) line += !options.unicode ? std::string(1, c) : c == '+' ? "┬" : "─";
  return fmt::format("{:{}}{}{}\n{}\n", "", margin, options.unicode ? "└" : "+", line, labels);
}

/// Returns marks and names side by side, on as many lines as they take.
std::string legend(const std::vector<NamedCurve>& curves, const PlotOptions& options) {
  std::string lines;
  int used = 0;
  for (size_t i = 0; i < curves.size(); ++i) {
    const std::string name =
        cut_to_width(printable(curves[i].name, options.unicode), options.width - 2, options.unicode);
    const int columns = 2 + display_width(name);
    if (i > 0) {
      const bool fits = used + 2 + columns <= options.width;
      lines += fits ? "  " : "\n";
      used = fits ? used + 2 : 0;
    }
    const std::string mark = mark_of(i, options.unicode);
    lines += (options.colour ? colour_on(i) + mark + kColourOff : mark) + " " + name;
    used += columns;
  }
  return lines + "\n";
}

/// Returns the lines above the axes.
std::string heading(const std::vector<NamedCurve>& curves, const PlotOptions& options) {
  const std::string& title = options.title.empty() && curves.size() == 1 ? curves[0].name : options.title;
  return (title.empty() ? "" : printable(title, options.unicode) + "\n") +
         (curves.size() > 1 ? legend(curves, options) : "");
}

void check_curves(const std::vector<NamedCurve>& curves) {
  if (curves.size() > kMostCurves)
    fail(ExitCode::kUsage, "[plot] expected at most {} curves, got {}: name fewer metrics or runs",
         kMostCurves, curves.size());
  std::set<std::string> names;
  for (const NamedCurve& curve : curves)
    if (!names.insert(curve.name).second)
      fail(ExitCode::kUsage, "[plot] expected each curve once, got \"{}\" twice", curve.name);
}

/// Returns the range of the column means, which is smaller than that of the points because averaging flattens
/// peaks.
Range drawn_range(const std::vector<std::vector<double>>& curves) {
  std::vector<double> drawn;
  for (const std::vector<double>& means : curves)
    std::copy_if(means.begin(), means.end(), std::back_inserter(drawn),
                 [](double y) { return !std::isnan(y); });
  return range_of(drawn);
}

}  // namespace

std::string overlay(const std::vector<NamedCurve>& curves, const PlotOptions& options) {
  check_curves(curves);
  std::vector<Curve> points;
  std::vector<double> all_x;
  for (const NamedCurve& curve : curves) {
    points.push_back(finite_points(curve.curve));
    all_x.insert(all_x.end(), points.back().x.begin(), points.back().x.end());
  }
  if (all_x.empty()) return heading(curves, options) + "(no points to plot)\n";
  const int rows = std::max(3, options.height), width = std::max(24, options.width);
  const Range x = range_of(all_x);
  const auto means_of_all = [&](int columns) {
    std::vector<std::vector<double>> means;
    for (const Curve& curve : points)
      means.push_back(column_means(curve, x, columns * (options.unicode ? 2 : 1)));
    return means;
  };
  std::map<int, std::string> labels;
  int margin = 8;
  Range y;
  // Labels decide how many columns are left for curves, and their range decides the labels: twice settles it.
  for (int pass = 0; pass < 2; ++pass) {
    y = drawn_range(means_of_all(width - margin - 1));
    labels.clear();
    size_t widest = 0;
    for (const Tick& tick : ticks_of(y, rows / 3)) {
      labels[static_cast<int>(std::lround((1 - y.share(tick.value, 0.5)) * (rows - 1)))] = tick.label;
      widest = std::max(widest, tick.label.size());
    }
    margin = static_cast<int>(widest) + 2;
  }
  const int columns = width - margin - 1;
  Canvas canvas(columns, rows, options.unicode);
  std::vector<std::vector<int>> lines;
  for (const std::vector<double>& means : means_of_all(columns)) {
    canvas.begin_curve(lines.size());
    lines.push_back(draw(canvas, means, y));
  }
  for (size_t i = 0; i < lines.size() && lines.size() > 1; ++i) {
    canvas.begin_curve(i);
    mark(canvas, lines[i], i, lines.size());
  }
  std::string out = heading(curves, options);
  for (int row = 0; row < rows; ++row) {
    const auto label = labels.find(row);
    const bool tick = label != labels.end();
    out += fmt::format("{:>{}} {}{}\n", tick ? label->second : "", margin - 1,
                       options.unicode ? (tick ? "┤" : "│") : (tick ? "+" : "|"),
                       canvas.row(row, options.colour && lines.size() > 1));
  }
  return out + x_axis(x, columns, margin, options);
}

std::string plot(const Curve& curve, const PlotOptions& options) { return overlay({{"", curve}}, options); }

bool prints_colours() {
  return isatty(STDOUT_FILENO) != 0 && can_redraw() && environment_variable("NO_COLOR").empty();
}

std::string sparkline(const std::vector<double>& y, int width, bool unicode) {
  Curve points;
  for (const double value : y) {
    if (!std::isfinite(value)) continue;
    points.x.push_back(static_cast<double>(points.x.size()));
    points.y.push_back(value);
  }
  if (points.y.size() < 2 || width < 1) return "";
  Canvas canvas(width, 1, unicode);
  draw(canvas, column_means(points, range_of(points.x), canvas.width()), range_of(points.y));
  return canvas.row(0, false);
}

}  // namespace tycho
