// The host's view of an engine tensor. Torch-free.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tycho {

/// Over all elements, in fp32 on the tensor's device; one copy to the host.
struct TensorStats {
  double mean = 0, std = 0;  // std of the population
  double min = 0, max = 0, norm = 0;
  bool finite = true;
};

/// Counts of the finite elements in equal parts of [low, high].
struct Histogram {
  double low = 0, high = 0;
  std::vector<int64_t> counts;
};

/// Element by element. Comparisons give 0 and 1.
enum class TensorOp { kAdd, kSub, kMul, kDiv, kPow, kEq, kNe, kLt, kLe, kGt, kGe };
enum class TensorFunction { kAbs, kNeg, kSqrt, kExp, kLog };
/// Of several elements one. kArgmax gives the first position of the largest, from 0.
enum class TensorReduction { kSum, kMean, kMax, kMin, kArgmax };

/// A tensor, or a part of one, on its device. Dimensions and positions count from 0, ends are exclusive.
/// Used by the engine's thread. Throws Error (kUsage) for positions outside, (kNumerics) without memory.
class TensorView {
 public:
  virtual ~TensorView() = default;
  virtual const std::vector<int64_t>& shape() const = 0;
  virtual std::string dtype() const = 0;   // "f32", "bf16", "i32"
  virtual std::string device() const = 0;  // "cpu", "cuda:0"
  /// Bytes that views of one storage() keep alive together; 0 for what belongs to the model.
  virtual int64_t num_bytes() const = 0;
  /// Identifies the memory that this view and its parts share.
  virtual const void* storage() const { return this; }
  virtual TensorStats stats() const = 0;
  virtual Histogram histogram(int64_t bins) const = 0;
  /// All elements in row-major order.
  virtual std::vector<double> values() const = 0;
  /// Positions [begin, end) of one dimension; shares the bytes.
  virtual std::unique_ptr<TensorView> slice(int64_t dim, int64_t begin, int64_t end) const = 0;
  /// One position of a dimension, without that dimension; shares the bytes.
  virtual std::unique_ptr<TensorView> select(int64_t dim, int64_t at) const = 0;
  /// The same bytes as [rows, last dimension].
  virtual std::unique_ptr<TensorView> matrix() const = 0;
  /// A copy that lives by itself, on the same device or in host memory.
  virtual std::unique_ptr<TensorView> clone(bool on_host = false) const = 0;
  /// A new fp32 tensor: of this one and another of the engine on the same device. Their shapes are alike, or
  /// fit as NumPy's: sizes are compared from the last on, and one of 1 is repeated.
  virtual std::unique_ptr<TensorView> combined(TensorOp op, const TensorView& right) const = 0;
  virtual std::unique_ptr<TensorView> applied(TensorFunction function) const = 0;
  /// A new fp32 tensor without that dimension; without `dim` a number over all elements, whose positions
  /// count in row-major order.
  virtual std::unique_ptr<TensorView> reduced(TensorReduction how, std::optional<int64_t> dim) const = 0;
  /// A new fp32 tensor: [M, K] times [K, N], or batches of such matrices.
  virtual std::unique_ptr<TensorView> matmul(const TensorView& right) const = 0;
  /// A new fp32 tensor of shares along one dimension.
  virtual std::unique_ptr<TensorView> softmax(int64_t dim) const = 0;
  /// Two new fp32 tensors: the `count` largest of the last dimension, the largest first, and their positions.
  virtual std::pair<std::unique_ptr<TensorView>, std::unique_ptr<TensorView>> largest(
      int64_t count) const = 0;
  /// Two dimensions swapped; shares the bytes.
  virtual std::unique_ptr<TensorView> transposed(int64_t a, int64_t b) const = 0;
  /// Other sizes, of as many elements; shares the bytes where they allow it.
  virtual std::unique_ptr<TensorView> reshaped(const std::vector<int64_t>& shape) const = 0;
  /// A new tensor of one dimension: the elements where `mask`, of the same shape, is not 0.
  virtual std::unique_ptr<TensorView> masked(const TensorView& mask) const = 0;
  /// A number as a tensor without dimensions, beside this one.
  virtual std::unique_ptr<TensorView> scalar(double value) const = 0;

  int64_t numel() const {
    int64_t product = 1;
    for (const int64_t size : shape()) product *= size;
    return product;
  }
};

}  // namespace tycho
