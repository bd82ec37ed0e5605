// Prints tensors.
#include "bindings/run/tensor_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/metrics/format.h"

namespace tycho {
namespace {

std::string shape_text(const std::vector<int64_t>& shape, bool unicode) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : unicode ? "×" : "x") + std::to_string(size);
  return text;
}

/// Which positions are shown: the first ones, and the last when not all fit.
struct Shown {
  int64_t first = 0;
  bool last = false;
};

Shown shown_of(int64_t size, int64_t limit) {
  if (size <= limit) return {size, false};
  return {std::max<int64_t>(1, limit - 1), true};
}

/// Returns the shown columns of rows [begin, end).
std::vector<std::vector<double>> read_rows(const TensorView& matrix, int64_t begin, int64_t end,
                                           const Shown& columns) {
  std::vector<std::vector<double>> out(static_cast<size_t>(end - begin));
  const int64_t width = matrix.shape()[1];
  const auto append = [&](int64_t from, int64_t to) {
    const std::vector<double> values = matrix.slice(0, begin, end)->slice(1, from, to)->values();
    for (size_t i = 0; i < values.size(); ++i) out[i / static_cast<size_t>(to - from)].push_back(values[i]);
  };
  append(0, columns.first);
  if (columns.last) append(width - 1, width);
  return out;
}

/// The power of ten that numbers are shown in, 0 when they are readable without one, and the number of
/// decimals that gives the largest four significant digits.
struct NumberScale {
  int power = 0, decimals = 3;
};

NumberScale scale_of(const std::vector<std::vector<double>>& rows) {
  double largest = 0;
  for (const auto& row : rows)
    for (const double x : row)
      if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  if (largest == 0) return {};
  const int power = static_cast<int>(std::floor(std::log10(largest)));
  if (largest < 0.1 || largest >= 1000) return {power, 3};
  return {0, largest <= 1 ? 4 : 3 - power};  // shares have four decimals
}

/// Returns four significant digits without trailing zeros: "0.02035", "1.25e-5".
std::string four_digits(double value) {
  std::string text = std::isfinite(value) ? fmt::format("{:.4g}", value) : exact_text(value);
  for (const char* padded : {"e-0", "e+0"})
    if (const size_t at = text.find(padded); at != std::string::npos) text.erase(at + 2, 1);
  return text;
}

bool all_whole(const std::vector<std::vector<double>>& rows) {
  for (const auto& row : rows)
    for (const double x : row)
      if (x != std::floor(x) || std::abs(x) >= 1e6) return false;
  return true;
}

std::string row_text(const std::vector<double>& row, bool gap, const NumberScale& scale, bool whole,
                     const char* dots) {
  std::string text;
  for (size_t i = 0; i < row.size(); ++i) {
    if (gap && i + 1 == row.size()) text += fmt::format("  {}", dots);
    text += whole ? fmt::format(" {:6.0f}", row[i])
                  : fmt::format(" {:8.{}f}", row[i] / std::pow(10.0, scale.power), scale.decimals);
  }
  return text + "\n";
}

}  // namespace

std::string tensor_header(const TensorView& tensor, bool unicode) {
  const std::string kind =
      fmt::format("{}[{}] {}", tensor.dtype(), shape_text(tensor.shape(), unicode), tensor.device());
  if (tensor.numel() == 0) return kind + "  empty";
  const TensorStats stats = tensor.stats();
  if (tensor.numel() == 1) return fmt::format("{}  {}", kind, four_digits(stats.mean));
  return fmt::format("{}  mean {}  std {}  min {}  max {}  {}", kind, four_digits(stats.mean),
                     four_digits(stats.std), four_digits(stats.min), four_digits(stats.max),
                     stats.finite ? "finite" : "NOT FINITE");
}

std::string tensor_text(const TensorView& tensor, int64_t rows, int64_t columns, bool unicode) {
  std::string text = tensor_header(tensor, unicode) + "\n";
  if (tensor.numel() <= 1) return text;
  const std::unique_ptr<TensorView> matrix = tensor.matrix();
  const int64_t height = matrix->shape()[0], width = matrix->shape()[1];
  const Shown down = shown_of(height, rows), across = shown_of(width, columns);
  std::vector<std::vector<double>> numbers = read_rows(*matrix, 0, down.first, across);
  if (down.last) numbers.push_back(read_rows(*matrix, height - 1, height, across).front());
  const bool whole = all_whole(numbers);
  const NumberScale scale = whole ? NumberScale{} : scale_of(numbers);
  if (scale.power != 0)
    text += fmt::format(" {} {}\n", short_text(std::pow(10.0, scale.power)), unicode ? "×" : "x");
  const char* dots = unicode ? "…" : "...";
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (down.last && i + 1 == numbers.size()) text += fmt::format("  {}\n", dots);
    text += row_text(numbers[i], across.last, scale, whole, dots);
  }
  if (down.last) text += fmt::format("  ({} of {} rows; (value):show(rows))\n", numbers.size(), height);
  return text;
}

std::string histogram_text(const Histogram& histogram, bool unicode) {
  static constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  int64_t most = 1;
  for (const int64_t count : histogram.counts) most = std::max(most, count);
  std::string bars;
  for (const int64_t count : histogram.counts) {
    const double share = static_cast<double>(count) / static_cast<double>(most);
    if (unicode)
      bars += count == 0 ? " " : kBars[static_cast<size_t>(std::lround(share * 7))];
    else
      bars += std::to_string(std::lround(share * 9));
  }
  return fmt::format(" {} {} {}\n", short_text(histogram.low), bars, short_text(histogram.high));
}

}  // namespace tycho
