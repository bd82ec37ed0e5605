// Writes SVG.
#include "trainer/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace tycho {
namespace {

constexpr double kLeft = 58, kRight = 18, kTop = 56, kBottom = 44;
constexpr double kLetterWidth = 6.2;  // about, of tick labels
constexpr size_t kMaxWords = 12;

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && (end == text.data() + text.size());
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// Returns the number of UTF-8 code points.
double num_letters(const std::string& text) {
  return static_cast<double>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// Returns a step of 1, 2 or 5 times a power of ten, about `count` of which fit between two numbers.
/// Subtracts parts, since the difference of large numbers may be infinite.
double nice_step(double low, double high, int count) {
  const double raw = high / count - low / count, power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power) return factor * power;
  return 10 * power;
}

}  // namespace

Scale Scale::linear(double low, double high) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  low = std::clamp(low, -kLargest, kLargest), high = std::clamp(high, -kLargest, kLargest);
  Scale scale;
  scale.low_ = low, scale.high_ = high;
  if (!(high > low))
    scale.low_ = low - std::max(1e-9, std::abs(low) * 0.05),
    scale.high_ = low + std::max(1e-9, std::abs(low) * 0.05);
  return scale;
}

Scale Scale::logarithmic(double low, double high) {
  Scale scale = linear(std::log10(low), std::log10(high));
  scale.log_ = true;
  return scale;
}

Scale Scale::of(const std::vector<std::string>& values) {
  double low = INFINITY, high = -INFINITY;
  bool numbers = true;
  std::vector<std::string> words;
  for (const std::string& value : values) {
    const std::optional<double> number = number_of(value);
    numbers = numbers && number;
    if (number) low = std::min(low, *number), high = std::max(high, *number);
    if (std::find(words.begin(), words.end(), value) == words.end()) words.push_back(value);
  }
  std::sort(words.begin(), words.end(), [](const std::string& a, const std::string& b) {
    const auto x = number_of(a), y = number_of(b);
    return x && y ? *x < *y : a < b;
  });
  if (!numbers || words.size() <= 4) {
    Scale scale;
    if (words.size() > kMaxWords) words.resize(kMaxWords);
    scale.words_ = words;
    return scale;
  }
  return (low > 0 && high > 20 * low ? logarithmic(low, high) : linear(low, high)).padded();
}

Scale Scale::padded() const {
  Scale scale = *this;
  if (!words_.empty()) return scale;
  const Scale wider = linear(low_ - room(0.05), high_ + room(0.05));
  scale.low_ = wider.low_, scale.high_ = wider.high_;
  return scale;
}

bool Scale::is_outside(double value) const {
  const double x = log_ ? std::log10(std::max(value, 1e-300)) : value;
  return words_.empty() && (x < low_ || x > high_);
}

double Scale::at(double value) const {
  const double x = log_ ? std::log10(std::max(value, 1e-300)) : value;
  return share(x);
}

double Scale::share(double x) const {
  return std::clamp((x / 2 - low_ / 2) / (high_ / 2 - low_ / 2), 0.0, 1.0);
}

double Scale::room(double share) const { return high_ * share - low_ * share; }

double Scale::at(const std::string& value) const {
  if (words_.empty()) {
    const std::optional<double> number = number_of(value);
    return number ? at(*number) : -1;
  }
  const auto found = std::find(words_.begin(), words_.end(), value);
  if (found == words_.end()) return -1;
  return (static_cast<double>(found - words_.begin()) + 0.5) / static_cast<double>(words_.size());
}

std::vector<std::pair<double, std::string>> Scale::ticks() const {
  std::vector<std::pair<double, std::string>> ticks;
  for (const std::string& word : words_) ticks.emplace_back(at(word), word);
  if (!words_.empty()) return ticks;
  if (log_) {
    const bool few = high_ - low_ < 3;
    for (double power = std::floor(low_); power <= high_; ++power) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor > 1 && !few) continue;
        const double x = power + std::log10(factor);
        if (x >= low_ - 1e-9 && x <= high_ + 1e-9)
          ticks.emplace_back((x - low_) / (high_ - low_), fmt::format("{:g}", factor * std::pow(10, power)));
      }
    }
    return ticks;
  }
  constexpr int kMostTicks = 20;  // a step below the precision of a number adds nothing to it
  const double step = nice_step(low_, high_, 5), first = std::ceil(low_ / step);
  for (int i = 0; i < kMostTicks; ++i) {
    const double x = (first + i) * step;
    if (!(x - step * 1e-9 <= high_)) break;
    ticks.emplace_back(share(x), fmt::format("{:.6g}", std::abs(x) < step * 1e-9 ? 0 : x));
  }
  return ticks;
}

Drawing::Drawing(int width, int height, const std::string& title) : width_(width), height_(height) {
  body_ = fmt::format("<text class=\"title\" x=\"8\" y=\"18\">{}</text>\n", escape_html(title));
  body_ += fmt::format("<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", kLeft, kTop,
                       width - kLeft - kRight, height - kTop - kBottom);
}

double Drawing::px(double x) const { return kLeft + x * (width_ - kLeft - kRight); }
double Drawing::py(double y) const { return height_ - kBottom - y * (height_ - kTop - kBottom); }

void Drawing::x_axis(const Scale& scale, const std::string& label) {
  double free_from = 0;
  for (const auto& [at, words] : scale.ticks()) {
    body_ += fmt::format("<line class=\"tick\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>", px(at),
                         kTop, height_ - kBottom + 4);
    const double half = kLetterWidth / 2 * num_letters(words);
    if (px(at) - half < free_from || px(at) + half > width_) continue;
    free_from = px(at) + half + kLetterWidth;
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", px(at),
                         height_ - kBottom + 16, escape_html(words));
  }
  body_ += fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       px(0.5), height_ - 8, escape_html(label));
}

void Drawing::y_axis(const Scale& scale, const std::string& label) {
  for (const auto& [at, words] : scale.ticks()) {
    body_ += fmt::format("<line class=\"tick\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>",
                         kLeft - 4, width_ - kRight, py(at));
    body_ += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 7, py(at) + 4,
                         escape_html(words));
  }
  // Level and above the frame: tick labels may be as long as they are.
  body_ += fmt::format("<text class=\"label\" x=\"8\" y=\"{}\">{}</text>\n", kTop - 10, escape_html(label));
}

void Drawing::inner_axis(double x, const Scale& scale, const std::string& label) {
  body_ += fmt::format("<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>",
                       px(x), py(0), py(1));
  for (const auto& [at, words] : scale.ticks()) {
    // Lines of trials meet where a word is: it stands above them. Numbers stand beside the axis, on a ground
    // of their own.
    const double base = py(at) + (scale.is_words() ? -6 : 4);
    body_ += fmt::format(
        "<rect class=\"ground\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"13\"/>"
        "<text class=\"inner\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        px(x) + 3, base - 10, kLetterWidth * num_letters(words) + 5, px(x) + 5, base, escape_html(words));
  }
  body_ += fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       px(x), height_ - kBottom + 20, escape_html(label));
}

void Drawing::dot(double x, double y, const std::string& color, const std::string& hint, double radius) {
  body_ +=
      fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"><title>{}</title></circle>\n",
                  px(x), py(y), radius, color, escape_html(hint));
}

void Drawing::beyond(double x, bool above, const std::string& color, const std::string& hint) {
  const double tip = above ? py(1) + 2 : py(0) - 2, base = above ? tip + 8 : tip - 8;
  body_ += fmt::format(
      "<polygon class=\"beyond\" points=\"{0:.1f},{1:.1f} {2:.1f},{3:.1f} {4:.1f},{3:.1f}\" "
      "fill=\"{5}\"><title>{6}</title></polygon>\n",
      px(x), tip, px(x) - 4, base, px(x) + 4, color, escape_html(hint));
}

void Drawing::line(const std::vector<std::pair<double, double>>& points, const std::string& color,
                   double width, double opacity, const std::string& hint) {
  std::string path;
  for (const auto& [x, y] : points) path += fmt::format("{:.1f},{:.1f} ", px(x), py(y));
  body_ += fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" "
      "stroke-opacity=\"{}\"><title>{}</title></polyline>\n",
      path, color, width, opacity, escape_html(hint));
}

void Drawing::bar(double x, double width, double height, const std::string& color, const std::string& hint) {
  body_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
      "fill=\"{}\"><title>{}</title></rect>\n",
      px(x), py(height), px(width) - px(0), py(0) - py(height), color, escape_html(hint));
}

void Drawing::text(double x, double y, const std::string& words, const char* anchor) {
  body_ += fmt::format("<text class=\"inner\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                       px(x), py(y), anchor, escape_html(words));
}

void Drawing::rank_legend(const std::string& more) {
  constexpr int kSteps = 6, kStepWidth = 9;
  const std::string words = more.empty() ? "worst" : "worst, " + more;
  double x = width_ - kRight - kLetterWidth * num_letters(words);
  body_ += fmt::format("<text class=\"legend\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
                       width_ - kRight, kTop - 10, escape_html(words));
  x -= 5 + kSteps * kStepWidth;
  for (int i = 0; i < kSteps; ++i)
    body_ +=
        fmt::format("<rect x=\"{:.1f}\" y=\"{}\" width=\"{}\" height=\"8\" fill=\"{}\"/>", x + i * kStepWidth,
                    kTop - 18, kStepWidth, rank_color(static_cast<double>(i) / (kSteps - 1)));
  body_ += fmt::format("<text class=\"legend\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"end\">best</text>\n",
                       x - 5, kTop - 10);
}

std::string Drawing::svg() const {
  return fmt::format(
      "<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" xmlns=\"http://www.w3.org/2000/svg\" "
      "role=\"img\">\n{2}</svg>\n",
      width_, height_, body_);
}

std::string rank_color(double share) {
  // Five colours of viridis (Smith and van der Walt 2015), without its brightest yellow.
  constexpr std::array<std::array<double, 3>, 5> kStops = {
      {{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {216, 220, 60}}};
  const double at = std::clamp(share, 0.0, 1.0) * (kStops.size() - 1);
  const auto i = std::min(static_cast<size_t>(at), kStops.size() - 2);
  const double t = at - static_cast<double>(i);
  std::array<int, 3> mixed{};
  for (size_t c = 0; c < 3; ++c)
    mixed[c] = static_cast<int>(std::lround(kStops[i][c] * (1 - t) + kStops[i + 1][c] * t));
  return fmt::format("#{:02x}{:02x}{:02x}", mixed[0], mixed[1], mixed[2]);
}

std::string escape_html(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace tycho
