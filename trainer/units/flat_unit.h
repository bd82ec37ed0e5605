// Parameters that are gathered and updated together: one block, the embedding, the head. One extent list
// serves the optimizer, the communicator, the checkpoint and export.
#pragma once
#include <memory>
#include <vector>

#include "trainer/base/precision.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/param_spec.h"

namespace tycho {

/// Tensors by index: a unit's parameters in the order of its spec, then its stacks.
using Views = std::vector<Tensor>;

/// Where one parameter lies in its unit's flat buffers, in elements.
struct Extent {
  int64_t begin = 0, end = 0;
  const ParamSpec* spec = nullptr;
};

/// The flat buffer of one unit and its twins. Movable; views stay valid.
class FlatUnit {
 public:
  /// How a unit is used. kTrain has fp32 master weights; the next two have none and train a bf16 unit in
  /// place, rounded to nearest even or stochastically; kInfer has no gradients either.
  enum class Use { kTrain, kTrainInPlace, kTrainStochastic, kInfer };

  FlatUnit(const UnitSpec& spec, at::ScalarType dtype, const at::Device& device, Use use);

  const UnitSpec& spec() const { return *spec_; }
  const std::vector<Extent>& extents() const { return extents_; }
  /// [numel], compute dtype; padded behind its end to a multiple of 4096 bytes.
  const Tensor& flat_params() const { return params_; }
  /// [numel] fp32, same layout; undefined when the unit is frozen.
  const Tensor& flat_grads() const { return grads_; }
  /// [numel] fp32, same layout: the weights that the optimizer updates. The parameters themselves when those
  /// are fp32, or are trained in place.
  const Tensor& flat_master() const { return master_; }
  bool rounds_stochastically() const { return stochastic_; }
  const Views& params() const { return param_views_; }
  /// As params(), but undefined where a parameter, or all of a stack, is frozen. Empty when the unit is not
  /// trained at all.
  Views& grads() { return grad_views_; }
  /// params = master, rounded. Nothing to do where they are the same.
  void refresh_from_master();

 private:
  Views make_views(const Tensor& flat) const;
  void leave_out_frozen(Views& grads) const;

  std::shared_ptr<const UnitSpec> spec_;
  std::vector<Extent> extents_;
  bool stochastic_ = false;
  Tensor params_, grads_, master_;
  Views param_views_, grad_views_;
};

/// The dtype that a model computes in.
at::ScalarType compute_dtype(Precision precision);

/// One unit per spec.
std::vector<FlatUnit> make_units(const std::vector<UnitSpec>& specs, at::ScalarType dtype,
                                 const at::Device& device, FlatUnit::Use use);

}  // namespace tycho
