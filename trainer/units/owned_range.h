// What this rank owns of a unit: the elements whose gradients it ends up with and whose weights it updates.
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/layout/unit_layout.h"
#include "trainer/units/gathered_unit.h"

namespace tycho {

/// Elements [begin, end) of a unit, perhaps none. The buffers have one number per owned element; copies share
/// them. Optimizer, clipping and checkpoint walk `extents`, and never assume that a parameter is whole.
struct OwnedRange {
  UnitLayout layout;
  int64_t begin = 0, end = 0;
  std::vector<Extent> extents;  // of the buffers below
  Tensor params;  // compute dtype: the stretch of the gathered parameters that this rank refreshes
  Tensor grads;   // fp32; undefined when the unit is frozen or only infers
  /// fp32: the weights that the optimizer updates. `params` itself when those are fp32 or are trained in
  /// place; undefined when the unit only infers.
  Tensor master;
  bool rounds_stochastically = false;  // the optimizer rounds `params` so, for there is no master

  int64_t size() const { return end - begin; }
  /// Whether master weights have memory of their own.
  bool has_own_master() const { return master.defined() && !master.is_same(params); }
  /// What a checkpoint holds: the master weights where there are some.
  const Tensor& weights() const { return master.defined() ? master : params; }
  /// params = master, rounded. Nothing to do where they are the same.
  void refresh_from_master() const;
};

/// Elements [begin, end) of a gathered unit: params and grads are views of its buffers, master weights of
/// their own are taken here.
OwnedRange own_range(const GatheredUnit& unit, int64_t begin, int64_t end, UnitUse use);
/// The same of a unit that is whole nowhere: `params` and `grads` (undefined when it is frozen) hold its
/// elements [begin, end) and nothing else.
OwnedRange own_shard(const UnitLayout& layout, int64_t begin, int64_t end, const Tensor& params,
                     const Tensor& grads, UnitUse use);
/// All of it.
OwnedRange own_unit(const GatheredUnit& unit, UnitUse use);

}  // namespace tycho
