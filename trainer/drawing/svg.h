// Drawings as SVG text: axes, points, lines, bars. Torch-free.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace tycho {

/// Values of one direction of a drawing: numbers, evenly or by their logarithm, or words side by side.
class Scale {
 public:
  /// From all values that will be shown: numbers if all are, by their logarithm if they are positive and span
  /// more than a factor of 20.
  static Scale of(const std::vector<std::string>& values);
  static Scale linear(double low, double high);
  static Scale logarithmic(double low, double high);
  /// The same with room at both ends, so that no mark lies on the frame.
  Scale padded() const;

  /// Where a value lies, from 0 to 1; numbers outside are put on the edge. -1 for what has no place.
  double at(const std::string& value) const;
  double at(double value) const;
  /// Places and labels of ticks.
  std::vector<std::pair<double, std::string>> ticks() const;
  bool is_words() const { return !words_.empty(); }
  /// Whether a number lies outside, and is shown on the edge.
  bool is_outside(double value) const;

 private:
  /// Where a number of the axis lies, from 0 to 1.
  double share(double x) const;
  /// A share of the width, which is infinite itself between numbers near 1e308.
  double room(double share) const;

  std::vector<std::string> words_;
  double low_ = 0, high_ = 1;
  bool log_ = false;
};

/// One drawing with a frame, an x axis below and a y axis to the left. Coordinates are 0..1 of the frame, y
/// upwards.
class Drawing {
 public:
  Drawing(int width, int height, const std::string& title);
  void x_axis(const Scale& scale, const std::string& label);
  void y_axis(const Scale& scale, const std::string& label);
  /// A vertical axis inside the frame, with its labels: for parallel coordinates.
  void inner_axis(double x, const Scale& scale, const std::string& label);
  void dot(double x, double y, const std::string& color, const std::string& hint, double radius = 3.5);
  void line(const std::vector<std::pair<double, double>>& points, const std::string& color, double width,
            double opacity, const std::string& hint = "");
  /// A mark on the upper or lower edge for a value that lies beyond it.
  void beyond(double x, bool above, const std::string& color, const std::string& hint);
  void bar(double x, double width, double height, const std::string& color, const std::string& hint);
  void text(double x, double y, const std::string& words, const char* anchor = "middle");
  /// To the right of the title: from best to worst in the colours of rank_color, with what else the marks
  /// mean in `more`.
  void rank_legend(const std::string& more = "");
  std::string svg() const;

 private:
  double px(double x) const;
  double py(double y) const;

  int width_, height_;
  std::string body_;
};

/// From the best (0) to the worst (1): dark to light, told apart also without colour vision.
std::string rank_color(double share);
/// &, <, > and quotes as HTML writes them.
std::string escape_html(const std::string& text);

}  // namespace tycho
