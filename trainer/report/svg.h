// Drawings as SVG text: axes, points, lines, bars. Torch-free.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace tycho {

/// Maps values to one direction of a drawing: numbers on a linear or logarithmic scale, or words side by
/// side.
class Scale {
 public:
  /// Makes a scale from all values to be shown: for numbers if all are, logarithmic if they are positive and
  /// span more than a factor of 20.
  static Scale of(const std::vector<std::string>& values);
  static Scale linear(double low, double high);
  static Scale logarithmic(double low, double high);
  /// Returns the scale with space at both ends, so that no mark is on the frame.
  Scale padded() const;

  /// Returns the position of a value from 0 to 1; numbers outside are put on the edge. -1 for a value without
  /// a position.
  double at(const std::string& value) const;
  double at(double value) const;
  /// Returns the positions and labels of ticks.
  std::vector<std::pair<double, std::string>> ticks() const;
  bool is_words() const { return !words_.empty(); }
  /// Returns true when a number is outside, and is shown on the edge.
  bool is_outside(double value) const;

 private:
  /// Returns the position of a number of the axis from 0 to 1.
  double share(double x) const;
  /// Returns a share of the width, which itself is infinite between numbers near 1e308.
  double room(double share) const;

  std::vector<std::string> words_;
  double low_ = 0, high_ = 1;
  bool log_ = false;
};

/// One drawing with a frame, an x axis below and a y axis at the left. Coordinates are 0..1 of the frame, y
/// upwards.
class Drawing {
 public:
  Drawing(int width, int height, const std::string& title);
  void x_axis(const Scale& scale, const std::string& label);
  void y_axis(const Scale& scale, const std::string& label);
  /// Adds a vertical axis inside the frame, with its labels, for parallel coordinates.
  void inner_axis(double x, const Scale& scale, const std::string& label);
  void dot(double x, double y, const std::string& color, const std::string& hint, double radius = 3.5);
  void line(const std::vector<std::pair<double, double>>& points, const std::string& color, double width,
            double opacity, const std::string& hint = "");
  /// Adds a mark on the upper or lower edge for a value beyond it.
  void beyond(double x, bool above, const std::string& color, const std::string& hint);
  void bar(double x, double width, double height, const std::string& color, const std::string& hint);
  void text(double x, double y, const std::string& words, const char* anchor = "middle");
  /// Adds, at the right of the title, a legend from best to worst in the colours of rank_color, and `more`
  /// for the meaning of other marks.
  void rank_legend(const std::string& more = "");
  std::string svg() const;

 private:
  double px(double x) const;
  double py(double y) const;

  int width_, height_;
  std::string body_;
};

/// Returns a colour from the best (0) to the worst (1): dark to light, distinguishable without colour vision.
std::string rank_color(double share);
/// Escapes &, <, > and quotes for HTML.
std::string escape_html(const std::string& text);

}  // namespace tycho
