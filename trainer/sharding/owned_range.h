// The elements of a unit that this rank owns: it receives their gradients and updates their weights.
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/layout/unit_layout.h"
#include "trainer/sharding/gathered_unit.h"

namespace tycho {

/// Elements [begin, end) of a unit, perhaps none. The buffers have one number per owned element; copies share
/// them. Optimizer, clipping and checkpoint walk `extents`, and never assume that a parameter is whole.
struct OwnedRange {
  UnitLayout layout;
  int64_t begin = 0, end = 0;
  std::vector<Extent> extents;  // extents in the buffers below
  Tensor params;                // compute dtype: the part of the gathered parameters that this rank refreshes
  Tensor grads;                 // fp32; undefined when the unit is frozen or only infers
  /// fp32: the weights that the optimizer updates. Same tensor as `params` when those are fp32 or are trained
  /// in place; undefined when the unit only infers.
  Tensor master;
  bool rounds_stochastically = false;  // the optimizer rounds `params` stochastically, because there is no
                                       // master

  int64_t size() const { return end - begin; }
  /// True if master weights have their own memory.
  bool has_own_master() const { return master.defined() && !master.is_same(params); }
  /// Weights for a checkpoint: the master weights if there are any, else `params`.
  const Tensor& weights() const { return master.defined() ? master : params; }
  /// Sets params to master, rounded. Does nothing where both are the same tensor.
  void refresh_from_master() const;
};

/// Returns elements [begin, end) of a gathered unit. params and grads are views of its buffers; separate
/// master weights are allocated here.
OwnedRange own_range(const GatheredUnit& unit, int64_t begin, int64_t end, UnitUse use);
/// Returns elements [begin, end) of a unit that is not gathered anywhere. `params` and `grads` (undefined
/// when the unit is frozen) hold only these elements.
OwnedRange own_shard(const UnitLayout& layout, int64_t begin, int64_t end, const Tensor& params,
                     const Tensor& grads, UnitUse use);
/// Returns all elements of a gathered unit.
OwnedRange own_unit(const GatheredUnit& unit, UnitUse use);

}  // namespace tycho
