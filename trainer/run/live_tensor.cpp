// Wraps at::Tensor; statistics and arithmetic are in fp32.
#include "trainer/run/live_tensor.h"

#include <ATen/ops/full.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/std.h>

#include <utility>

#include "trainer/run/native_errors.h"

namespace tycho {
namespace {

std::string short_dtype(at::ScalarType type) {
  switch (type) {
    case at::kFloat: return "f32";
    case at::kDouble: return "f64";
    case at::kBFloat16: return "bf16";
    case at::kHalf: return "f16";
    case at::kInt: return "i32";
    case at::kLong: return "i64";
    default: return at::toString(type);
  }
}

std::string shape_text(const Tensor& tensor) {
  std::string text;
  for (const int64_t size : tensor.sizes()) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return "[" + text + "]";
}

bool fit(at::IntArrayRef a, at::IntArrayRef b) {
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i)
    if (a[a.size() - i] != b[b.size() - i] && a[a.size() - i] != 1 && b[b.size() - i] != 1) return false;
  return true;
}

Tensor combine(TensorOp op, const Tensor& a, const Tensor& b) {
  switch (op) {
    case TensorOp::kAdd: return a.add(b);
    case TensorOp::kSub: return a.sub(b);
    case TensorOp::kMul: return a.mul(b);
    case TensorOp::kDiv: return a.div(b);
    case TensorOp::kPow: return a.pow(b);
    case TensorOp::kEq: return a.eq(b);
    case TensorOp::kNe: return a.ne(b);
    case TensorOp::kLt: return a.lt(b);
    case TensorOp::kLe: return a.le(b);
    case TensorOp::kGt: return a.gt(b);
    case TensorOp::kGe: return a.ge(b);
  }
  return a;
}

Tensor apply(TensorFunction function, const Tensor& x) {
  switch (function) {
    case TensorFunction::kAbs: return x.abs();
    case TensorFunction::kNeg: return x.neg();
    case TensorFunction::kSqrt: return x.sqrt();
    case TensorFunction::kExp: return x.exp();
    case TensorFunction::kLog: return x.log();
  }
  return x;
}

Tensor reduce(TensorReduction how, const Tensor& x, int64_t dim) {
  switch (how) {
    case TensorReduction::kSum: return x.sum(dim);
    case TensorReduction::kMean: return x.mean(dim);
    case TensorReduction::kMax: return x.amax(dim);
    case TensorReduction::kMin: return x.amin(dim);
    case TensorReduction::kArgmax: return x.argmax(dim);
  }
  return x;
}

class LiveTensor final : public TensorView {
 public:
  LiveTensor(const Tensor& tensor, bool owned)
      : tensor_(tensor), owned_(owned), shape_(tensor.sizes().begin(), tensor.sizes().end()) {}

  const std::vector<int64_t>& shape() const override { return shape_; }
  std::string dtype() const override { return short_dtype(tensor_.scalar_type()); }
  std::string device() const override { return tensor_.device().str(); }
  int64_t num_bytes() const override { return owned_ ? static_cast<int64_t>(tensor_.storage().nbytes()) : 0; }
  const void* storage() const override { return tensor_.storage().unsafeGetStorageImpl(); }

  TensorStats stats() const override {
    require_elements();
    return with_own_errors([&] {
      const Tensor x = tensor_.to(at::kFloat);
      const auto [least, most] = x.aminmax();
      const Tensor all = at::stack({x.mean(), at::std(x, /*unbiased=*/false), least, most, x.norm(),
                                    at::isfinite(x).all().to(at::kFloat)})
                             .cpu();
      const float* v = all.const_data_ptr<float>();
      return TensorStats{v[0], v[1], v[2], v[3], v[4], v[5] != 0};
    });
  }

  Histogram histogram(int64_t bins) const override {
    require_elements();
    return with_own_errors([&] {
      const Tensor all = tensor_.to(at::kFloat).flatten(), finite = all.masked_select(at::isfinite(all));
      Histogram result;
      result.counts.assign(static_cast<size_t>(bins), 0);
      if (finite.numel() == 0) return result;
      const auto [least, most] = finite.aminmax();
      result.low = least.item<float>(), result.high = most.item<float>();
      const Tensor counts = at::histc(finite.cpu(), bins, result.low, result.high);
      for (int64_t i = 0; i < bins; ++i)
        result.counts[static_cast<size_t>(i)] = static_cast<int64_t>(counts.const_data_ptr<float>()[i]);
      return result;
    });
  }

  std::vector<double> values() const override {
    return with_own_errors([&] {
      const Tensor all = tensor_.to(at::kDouble).cpu().contiguous();
      const double* begin = all.const_data_ptr<double>();
      return std::vector<double>(begin, begin + all.numel());
    });
  }

  std::unique_ptr<TensorView> slice(int64_t dim, int64_t begin, int64_t end) const override {
    const auto num_dims = static_cast<int64_t>(shape_.size());
    if (dim < 0 || dim >= num_dims || begin < 0 || end < begin || end > shape_[static_cast<size_t>(dim)])
      fail(ExitCode::kUsage, "[tensor] expected positions inside the tensor, got [{}, {}) of dimension {}",
           begin, end, dim);
    return make_view(tensor_.slice(dim, begin, end), owned_);
  }

  std::unique_ptr<TensorView> select(int64_t dim, int64_t at) const override {
    const auto num_dims = static_cast<int64_t>(shape_.size());
    if (dim < 0 || dim >= num_dims || at < 0 || at >= shape_[static_cast<size_t>(dim)])
      fail(ExitCode::kUsage, "[tensor] expected a position inside the tensor, got {} of dimension {}", at,
           dim);
    return make_view(tensor_.select(dim, at), owned_);
  }

  std::unique_ptr<TensorView> combined(TensorOp op, const TensorView& right) const override {
    const Tensor& other = dynamic_cast<const LiveTensor&>(right).tensor_;
    require_same_device(other);
    if (!fit(tensor_.sizes(), other.sizes()))
      fail(ExitCode::kUsage, "[tensor] expected shapes that fit, got {} and {}", shape_text(tensor_),
           shape_text(other));
    return with_own_errors([&] {
      return make_view(combine(op, tensor_.to(at::kFloat), other.to(at::kFloat)).to(at::kFloat),
                       /*owned=*/true);
    });
  }

  std::unique_ptr<TensorView> applied(TensorFunction function) const override {
    return with_own_errors(
        [&] { return make_view(apply(function, tensor_.to(at::kFloat)), /*owned=*/true); });
  }

  std::unique_ptr<TensorView> reduced(TensorReduction how, std::optional<int64_t> dim) const override {
    require_elements();
    if (dim) require_dim(*dim);
    return with_own_errors([&] {
      const Tensor x = dim ? tensor_.to(at::kFloat) : tensor_.to(at::kFloat).flatten();
      return make_view(reduce(how, x, dim.value_or(0)).to(at::kFloat), /*owned=*/true);
    });
  }

  std::unique_ptr<TensorView> matmul(const TensorView& right) const override {
    const Tensor& other = dynamic_cast<const LiveTensor&>(right).tensor_;
    require_same_device(other);
    const size_t a = shape_.size(), b = static_cast<size_t>(other.dim());
    if (a < 2 || b < 2 || tensor_.size(-1) != other.size(-2) ||
        !fit(tensor_.sizes().slice(0, a - 2), other.sizes().slice(0, b - 2)))
      fail(ExitCode::kUsage, "[tensor] mm expected [M x K] and [K x N], or batches of these, got {} and {}",
           shape_text(tensor_), shape_text(other));
    return with_own_errors(
        [&] { return make_view(tensor_.to(at::kFloat).matmul(other.to(at::kFloat)), /*owned=*/true); });
  }

  std::unique_ptr<TensorView> softmax(int64_t dim) const override {
    require_dim(dim);
    return with_own_errors([&] { return make_view(tensor_.to(at::kFloat).softmax(dim), /*owned=*/true); });
  }

  std::pair<std::unique_ptr<TensorView>, std::unique_ptr<TensorView>> largest(int64_t count) const override {
    require_dim(static_cast<int64_t>(shape_.size()) - 1);
    if (count < 1 || count > shape_.back())
      fail(ExitCode::kUsage, "[tensor] topk expected 1 to {} elements, got {}", shape_.back(), count);
    return with_own_errors([&] {
      const auto [values, positions] = tensor_.to(at::kFloat).topk(count);
      return std::pair{make_view(values, /*owned=*/true),
                       make_view(positions.to(at::kFloat), /*owned=*/true)};
    });
  }

  std::unique_ptr<TensorView> transposed(int64_t a, int64_t b) const override {
    require_dim(a), require_dim(b);
    return make_view(tensor_.transpose(a, b), owned_);
  }

  std::unique_ptr<TensorView> reshaped(const std::vector<int64_t>& shape) const override {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    if (count != numel())
      fail(ExitCode::kUsage, "[tensor] view expected sizes of {} elements, got sizes of {}", numel(), count);
    return with_own_errors([&] {
      const Tensor result = tensor_.reshape(shape);
      return make_view(result, owned_ || !result.is_alias_of(tensor_));
    });
  }

  std::unique_ptr<TensorView> masked(const TensorView& mask) const override {
    const Tensor& chosen = dynamic_cast<const LiveTensor&>(mask).tensor_;
    require_same_device(chosen);
    if (mask.shape() != shape_)
      fail(ExitCode::kUsage, "[tensor] a mask expected the shape {}, got {}", shape_text(tensor_),
           shape_text(chosen));
    return with_own_errors([&] { return make_view(tensor_.masked_select(chosen.ne(0)), /*owned=*/true); });
  }

  std::unique_ptr<TensorView> scalar(double value) const override {
    return with_own_errors(
        [&] { return make_view(at::full({}, value, tensor_.options().dtype(at::kFloat)), /*owned=*/true); });
  }

  std::unique_ptr<TensorView> matrix() const override {
    const int64_t width = shape_.empty() ? 1 : shape_.back();
    return with_own_errors([&] { return make_view(tensor_.reshape({width == 0 ? 0 : -1, width}), owned_); });
  }

  std::unique_ptr<TensorView> clone(bool on_host) const override {
    return with_own_errors([&] {
      const at::Device device = on_host ? at::Device(at::kCPU) : tensor_.device();
      return make_view(tensor_.to(tensor_.options().device(device), /*non_blocking=*/false, /*copy=*/true),
                       /*owned=*/true);
    });
  }

 private:
  void require_same_device(const Tensor& other) const {
    if (other.device() != tensor_.device())
      fail(ExitCode::kUsage, "[tensor] expected two tensors on one device, got {} and {}: x:cpu() copies one",
           tensor_.device().str(), other.device().str());
  }

  void require_dim(int64_t dim) const {
    if (dim < 0 || dim >= static_cast<int64_t>(shape_.size()))
      fail(ExitCode::kUsage, "[tensor] expected one of {} dimensions, got {}", shape_.size(), dim + 1);
  }

  void require_elements() const {
    if (tensor_.numel() == 0)
      fail(ExitCode::kUsage, "[tensor] expected a tensor with elements, got an empty one");
  }

  Tensor tensor_;
  bool owned_;
  std::vector<int64_t> shape_;
};

}  // namespace

std::unique_ptr<TensorView> make_view(const Tensor& tensor, bool owned) {
  return std::make_unique<LiveTensor>(tensor, owned);
}

}  // namespace tycho
