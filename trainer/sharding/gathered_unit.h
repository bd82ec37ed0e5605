// The parameters of a unit while a block computes with them, and the buffer that backward writes their
// gradients into.
#pragma once
#include <vector>

#include "trainer/base/precision.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/param_spec.h"
#include "trainer/layout/unit_layout.h"

namespace tycho {

/// Tensors by index: a unit's parameters in the order of its spec, then its stacks.
using Views = std::vector<Tensor>;

/// Use of a unit. kTrain has fp32 master weights; the next two have none and train a bf16 unit in place,
/// rounded to nearest even or stochastically; kInfer has no gradients either.
enum class UnitUse { kTrain, kTrainInPlace, kTrainStochastic, kInfer };

/// All parameters of a unit in one flat buffer of the compute dtype, and their gradients in another. Movable;
/// views stay valid.
class GatheredUnit {
 public:
  GatheredUnit(UnitLayout layout, at::ScalarType dtype, const at::Device& device, UnitUse use);
  /// Uses memory that other units may share: [numel] each; `grads` is undefined when there are none.
  GatheredUnit(UnitLayout layout, Tensor params, Tensor grads);

  const UnitLayout& layout() const { return layout_; }
  const UnitSpec& spec() const { return layout_.spec(); }
  /// [numel], compute dtype. Memory that the unit owns is padded to a multiple of 4096 bytes.
  const Tensor& flat_params() const { return params_; }
  /// [numel] fp32, same layout; undefined when the unit is frozen or only infers.
  const Tensor& flat_grads() const { return grads_; }
  const Views& params() const { return param_views_; }
  /// Gradients in the order of params(); undefined where a parameter, or all of a stack, is frozen. Empty
  /// when the unit only infers.
  Views& grads() { return grad_views_; }

 private:
  void make_all_views(bool has_grads);
  Views make_views(const Tensor& flat) const;
  void leave_out_frozen(Views& grads) const;

  UnitLayout layout_;
  Tensor params_, grads_;
  Views param_views_, grad_views_;
};

/// Returns the dtype that a model computes in.
at::ScalarType compute_dtype(Precision precision);

/// Allocates numel zeroed elements on whole pages, not shared with others.
Tensor flat_buffer(int64_t numel, at::ScalarType dtype, const at::Device& device);

}  // namespace tycho
