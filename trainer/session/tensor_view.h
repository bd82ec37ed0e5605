// The host's view of an engine tensor. Torch-free.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tycho {

/// Statistics over all elements, computed in fp32 on the tensor's device, with one copy to the host.
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

/// Element-wise operations. Comparisons give 0 and 1.
enum class TensorOp { kAdd, kSub, kMul, kDiv, kPow, kEq, kNe, kLt, kLe, kGt, kGe };
enum class TensorFunction { kAbs, kNeg, kSqrt, kExp, kLog };
/// Reductions of several elements to one. kArgmax gives the position, from 0, of the first largest one.
enum class TensorReduction { kSum, kMean, kMax, kMin, kArgmax };

/// A tensor or a part of one on its device. Dimensions and positions count from 0; ends are exclusive. Used
/// by the engine's thread. Throws Error (kUsage) for positions out of range, (kNumerics) without memory.
class TensorView {
 public:
  virtual ~TensorView() = default;
  virtual const std::vector<int64_t>& shape() const = 0;
  virtual std::string dtype() const = 0;   // "f32", "bf16", "i32"
  virtual std::string device() const = 0;  // "cpu", "cuda:0"
  /// Returns the bytes that views of one storage() keep alive together; 0 for memory of the model.
  virtual int64_t num_bytes() const = 0;
  /// Identifies the memory that this view and its parts share.
  virtual const void* storage() const { return this; }
  virtual TensorStats stats() const = 0;
  virtual Histogram histogram(int64_t bins) const = 0;
  /// Returns all elements in row-major order.
  virtual std::vector<double> values() const = 0;
  /// Returns positions [begin, end) of one dimension. Shares the bytes.
  virtual std::unique_ptr<TensorView> slice(int64_t dim, int64_t begin, int64_t end) const = 0;
  /// Returns one position of a dimension, without that dimension. Shares the bytes.
  virtual std::unique_ptr<TensorView> select(int64_t dim, int64_t at) const = 0;
  /// Returns the tensor as [rows, last dimension]. Shares the bytes.
  virtual std::unique_ptr<TensorView> matrix() const = 0;
  /// Returns an independent copy, on the same device or in host memory.
  virtual std::unique_ptr<TensorView> clone(bool on_host = false) const = 0;
  /// Returns a new fp32 tensor from this one and another tensor of the engine on the same device. Shapes must
  /// be equal or broadcast like NumPy's: sizes are compared from the last on, and a size of 1 is repeated.
  virtual std::unique_ptr<TensorView> combined(TensorOp op, const TensorView& right) const = 0;
  virtual std::unique_ptr<TensorView> applied(TensorFunction function) const = 0;
  /// Returns a new fp32 tensor without that dimension. Without `dim`, reduces all elements to one number;
  /// positions then count in row-major order.
  virtual std::unique_ptr<TensorView> reduced(TensorReduction how, std::optional<int64_t> dim) const = 0;
  /// Returns a new fp32 tensor: [M, K] times [K, N], or batches of such matrices.
  virtual std::unique_ptr<TensorView> matmul(const TensorView& right) const = 0;
  /// Returns a new fp32 tensor of shares along one dimension.
  virtual std::unique_ptr<TensorView> softmax(int64_t dim) const = 0;
  /// Returns two new fp32 tensors: the `count` largest of the last dimension, largest first, and their
  /// positions.
  virtual std::pair<std::unique_ptr<TensorView>, std::unique_ptr<TensorView>> largest(
      int64_t count) const = 0;
  /// Returns the tensor with two dimensions swapped. Shares the bytes.
  virtual std::unique_ptr<TensorView> transposed(int64_t a, int64_t b) const = 0;
  /// Returns the tensor with another shape of as many elements. Shares the bytes where the strides allow it.
  virtual std::unique_ptr<TensorView> reshaped(const std::vector<int64_t>& shape) const = 0;
  /// Returns a new tensor of one dimension: the elements where `mask`, of the same shape, is not 0.
  virtual std::unique_ptr<TensorView> masked(const TensorView& mask) const = 0;
  /// Returns a number as a tensor without dimensions, on the device of this one.
  virtual std::unique_ptr<TensorView> scalar(double value) const = 0;

  int64_t numel() const {
    int64_t product = 1;
    for (const int64_t size : shape()) product *= size;
    return product;
  }
};

}  // namespace tycho
