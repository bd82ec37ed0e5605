// A tensor whose arithmetic is plain loops: a stand-in for the engine's, and its oracle.
#pragma once
#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/session/tensor_view.h"

namespace tycho {

/// A small row-major tensor on the host.
class FakeTensor final : public TensorView {
 public:
  FakeTensor(std::vector<int64_t> shape, std::vector<double> numbers, bool owned = false)
      : shape_(std::move(shape)), numbers_(std::move(numbers)), owned_(owned) {}
  /// 1, 2, 3, ... over a shape.
  static std::unique_ptr<FakeTensor> counting(const std::vector<int64_t>& shape) {
    std::vector<double> numbers;
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    for (int64_t i = 1; i <= count; ++i) numbers.push_back(static_cast<double>(i));
    return std::make_unique<FakeTensor>(shape, numbers);
  }

  const std::vector<int64_t>& shape() const override { return shape_; }
  std::string dtype() const override { return "f32"; }
  std::string device() const override { return "cpu"; }
  int64_t num_bytes() const override { return owned_ ? numel() * 4 : 0; }
  TensorStats stats() const override {
    TensorStats s;
    const auto n = static_cast<double>(numbers_.size());
    s.min = s.max = numbers_.at(0);
    for (const double x : numbers_) {
      s.mean += x / n;
      s.norm += x * x;
      s.min = std::min(s.min, x), s.max = std::max(s.max, x);
      s.finite = s.finite && std::isfinite(x);
    }
    for (const double x : numbers_) s.std += (x - s.mean) * (x - s.mean) / n;
    s.std = std::sqrt(s.std), s.norm = std::sqrt(s.norm);
    return s;
  }
  Histogram histogram(int64_t bins) const override {
    const TensorStats s = stats();
    Histogram h{s.min, s.max, std::vector<int64_t>(static_cast<size_t>(bins))};
    for (const double x : numbers_) {
      const auto at = static_cast<int64_t>((x - s.min) / (s.max - s.min) * static_cast<double>(bins));
      ++h.counts[static_cast<size_t>(std::min(at, bins - 1))];
    }
    return h;
  }
  std::vector<double> values() const override { return numbers_; }
  std::unique_ptr<TensorView> slice(int64_t dim, int64_t begin, int64_t end) const override {
    int64_t inner = 1, outer = 1;
    for (size_t d = 0; d < shape_.size(); ++d)
      (static_cast<int64_t>(d) < dim ? outer : inner) *= static_cast<int64_t>(d) == dim ? 1 : shape_[d];
    const int64_t size = shape_[static_cast<size_t>(dim)];
    std::vector<double> part;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = begin * inner; i < end * inner; ++i)
        part.push_back(numbers_[static_cast<size_t>(o * size * inner + i)]);
    std::vector<int64_t> shape = shape_;
    shape[static_cast<size_t>(dim)] = end - begin;
    return std::make_unique<FakeTensor>(shape, part);
  }
  std::unique_ptr<TensorView> select(int64_t dim, int64_t at) const override {
    const std::vector<double> part = slice(dim, at, at + 1)->values();
    std::vector<int64_t> shape = shape_;
    shape.erase(shape.begin() + dim);
    return std::make_unique<FakeTensor>(shape, part);
  }
  /// Shapes that are alike, or a number beside a tensor.
  std::unique_ptr<TensorView> combined(TensorOp op, const TensorView& right) const override {
    const std::vector<double> other = right.values();
    if (other.size() != numbers_.size() && other.size() != 1 && numbers_.size() != 1)
      fail(ExitCode::kUsage, "[tensor] expected shapes that fit");
    std::vector<double> result(std::max(other.size(), numbers_.size()));
    for (size_t i = 0; i < result.size(); ++i)
      result[i] = combine(op, numbers_[numbers_.size() == 1 ? 0 : i], other[other.size() == 1 ? 0 : i]);
    return std::make_unique<FakeTensor>(numbers_.size() == 1 ? right.shape() : shape_, result,
                                        /*owned=*/true);
  }
  std::unique_ptr<TensorView> applied(TensorFunction function) const override {
    std::vector<double> result;
    for (const double x : numbers_)
      result.push_back(function == TensorFunction::kAbs    ? std::abs(x)
                       : function == TensorFunction::kNeg  ? -x
                       : function == TensorFunction::kSqrt ? std::sqrt(x)
                       : function == TensorFunction::kExp  ? std::exp(x)
                                                           : std::log(x));
    return std::make_unique<FakeTensor>(shape_, result, /*owned=*/true);
  }
  std::unique_ptr<TensorView> reduced(TensorReduction how, std::optional<int64_t> dim) const override {
    if (!dim) return FakeTensor({numel()}, numbers_).reduced(how, 0);
    const Strides s = strides(*dim);
    std::vector<double> result;
    for (int64_t o = 0; o < s.outer; ++o)
      for (int64_t i = 0; i < s.inner; ++i) {
        double sum = 0, best = at(o, 0, i, s), least = best;
        int64_t where = 0;
        for (int64_t k = 0; k < s.size; ++k) {
          const double x = at(o, k, i, s);
          sum += x, least = std::min(least, x);
          if (x > best) best = x, where = k;
        }
        result.push_back(how == TensorReduction::kSum    ? sum
                         : how == TensorReduction::kMean ? sum / static_cast<double>(s.size)
                         : how == TensorReduction::kMax  ? best
                         : how == TensorReduction::kMin  ? least
                                                         : static_cast<double>(where));
      }
    std::vector<int64_t> shape = shape_;
    shape.erase(shape.begin() + *dim);
    return std::make_unique<FakeTensor>(shape, result, /*owned=*/true);
  }
  /// Two matrices.
  std::unique_ptr<TensorView> matmul(const TensorView& right) const override {
    const std::vector<double> other = right.values();
    const int64_t rows = shape_.at(0), inner = shape_.at(1), columns = right.shape().at(1);
    if (right.shape().at(0) != inner) fail(ExitCode::kUsage, "[tensor] mm expected sizes that fit");
    std::vector<double> result(static_cast<size_t>(rows * columns));
    for (int64_t m = 0; m < rows; ++m)
      for (int64_t n = 0; n < columns; ++n)
        for (int64_t k = 0; k < inner; ++k)
          result[static_cast<size_t>(m * columns + n)] +=
              numbers_[static_cast<size_t>(m * inner + k)] * other[static_cast<size_t>(k * columns + n)];
    return std::make_unique<FakeTensor>(std::vector<int64_t>{rows, columns}, result, /*owned=*/true);
  }
  std::unique_ptr<TensorView> softmax(int64_t dim) const override {
    const Strides s = strides(dim);
    std::vector<double> result(numbers_.size());
    for (int64_t o = 0; o < s.outer; ++o)
      for (int64_t i = 0; i < s.inner; ++i) {
        double sum = 0;
        for (int64_t k = 0; k < s.size; ++k) sum += std::exp(at(o, k, i, s));
        for (int64_t k = 0; k < s.size; ++k)
          result[static_cast<size_t>((o * s.size + k) * s.inner + i)] = std::exp(at(o, k, i, s)) / sum;
      }
    return std::make_unique<FakeTensor>(shape_, result, /*owned=*/true);
  }
  std::pair<std::unique_ptr<TensorView>, std::unique_ptr<TensorView>> largest(int64_t count) const override {
    const int64_t width = shape_.back();
    std::vector<double> values, positions;
    for (int64_t row = 0; row < numel() / width; ++row) {
      std::vector<int64_t> order(static_cast<size_t>(width));
      for (int64_t i = 0; i < width; ++i) order[static_cast<size_t>(i)] = i;
      const auto number = [&](int64_t i) { return numbers_[static_cast<size_t>(row * width + i)]; };
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return number(a) > number(b); });
      for (int64_t i = 0; i < count; ++i) {
        values.push_back(number(order[static_cast<size_t>(i)]));
        positions.push_back(static_cast<double>(order[static_cast<size_t>(i)]));
      }
    }
    std::vector<int64_t> shape = shape_;
    shape.back() = count;
    return {std::make_unique<FakeTensor>(shape, values, /*owned=*/true),
            std::make_unique<FakeTensor>(shape, positions, /*owned=*/true)};
  }
  /// Of a matrix.
  std::unique_ptr<TensorView> transposed(int64_t, int64_t) const override {
    std::vector<double> result;
    for (int64_t column = 0; column < shape_.at(1); ++column)
      for (int64_t row = 0; row < shape_.at(0); ++row)
        result.push_back(numbers_[static_cast<size_t>(row * shape_[1] + column)]);
    return std::make_unique<FakeTensor>(std::vector<int64_t>{shape_[1], shape_[0]}, result);
  }
  std::unique_ptr<TensorView> reshaped(const std::vector<int64_t>& shape) const override {
    return std::make_unique<FakeTensor>(shape, numbers_);
  }
  std::unique_ptr<TensorView> masked(const TensorView& mask) const override {
    const std::vector<double> chosen = mask.values();
    std::vector<double> result;
    for (size_t i = 0; i < numbers_.size(); ++i)
      if (chosen.at(i) != 0) result.push_back(numbers_[i]);
    return std::make_unique<FakeTensor>(std::vector<int64_t>{static_cast<int64_t>(result.size())}, result,
                                        /*owned=*/true);
  }
  std::unique_ptr<TensorView> scalar(double value) const override {
    return std::make_unique<FakeTensor>(std::vector<int64_t>{}, std::vector<double>{value}, /*owned=*/true);
  }
  std::unique_ptr<TensorView> matrix() const override {
    return std::make_unique<FakeTensor>(std::vector<int64_t>{numel() / shape_.back(), shape_.back()},
                                        numbers_);
  }
  std::unique_ptr<TensorView> clone(bool) const override {
    return std::make_unique<FakeTensor>(shape_, numbers_, /*owned=*/true);
  }

 private:
  /// Sizes before, of and behind one dimension.
  struct Strides {
    int64_t outer = 1, size = 1, inner = 1;
  };
  Strides strides(int64_t dim) const {
    Strides s;
    for (int64_t d = 0; d < std::ssize(shape_); ++d)
      (d < dim ? s.outer : d == dim ? s.size : s.inner) *= shape_[static_cast<size_t>(d)];
    return s;
  }
  double at(int64_t o, int64_t k, int64_t i, const Strides& s) const {
    return numbers_[static_cast<size_t>((o * s.size + k) * s.inner + i)];
  }
  static double combine(TensorOp op, double a, double b) {
    switch (op) {
      case TensorOp::kAdd: return a + b;
      case TensorOp::kSub: return a - b;
      case TensorOp::kMul: return a * b;
      case TensorOp::kDiv: return a / b;
      case TensorOp::kPow: return std::pow(a, b);
      case TensorOp::kEq: return a == b ? 1 : 0;
      case TensorOp::kNe: return a != b ? 1 : 0;
      case TensorOp::kLt: return a < b ? 1 : 0;
      case TensorOp::kLe: return a <= b ? 1 : 0;
      case TensorOp::kGt: return a > b ? 1 : 0;
      case TensorOp::kGe: return a >= b ? 1 : 0;
    }
    return 0;
  }

  std::vector<int64_t> shape_;
  std::vector<double> numbers_;
  bool owned_;
};

}  // namespace tycho
