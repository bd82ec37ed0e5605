// Stores of the bytes of units. Models only acquire and release, so they work the same on one rank and on a
// thousand.
#pragma once
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/param_spec.h"
#include "trainer/layout/sum_tree.h"
#include "trainer/layout/unit_layout.h"
#include "trainer/layout/unit_shards.h"
#include "trainer/sharding/gathered_unit.h"
#include "trainer/sharding/owned_range.h"
#include "trainer/sharding/partial_gradients.h"
#include "trainer/sharding/tree_sum.h"

namespace tycho {

/// Use of a unit. kGeneration: forward, in the compute dtype, where the others may get codes of fp8.
enum class Pass { kForward, kBackward, kGeneration };

/// Gives a block its full parameters while it computes. Collective on the dp_shard axis when sharded.
class UnitStore {
 public:
  virtual ~UnitStore() = default;
  virtual int num_units() const = 0;
  virtual const UnitLayout& layout(int unit) const = 0;
  /// Returns the unit's parameters, complete until release; as codes of fp8 where a store gathers those
  /// (CodedUnit). Waits while they are being gathered. In stores
  /// that keep whole units, such as the two below, they stay valid after release.
  virtual const Views& acquire(int unit, Pass pass) = 0;
  virtual void release(int unit, Pass pass) = 0;
  /// Call before the first micro-batch of a step: forgets gradients that a failed step has left.
  virtual void begin_step() {}
  /// Memory into which backward writes gradients (fp32, the shapes of the parameters); undefined for frozen
  /// parameters (GatheredUnit::grads).
  virtual Views& grads(int unit) = 0;
  /// Call after the backward of each micro-batch, for units that are not frozen: grads(unit) may now be
  /// reduced over ranks, in the background. `last`: this was the last micro-batch of a step, and grads(unit)
  /// has the gradients of all. A store may wait for that call and reduce the sum, as the two below do; or
  /// reduce at every call and add to the range that it owns: see takes_gradients(). With a tree of several
  /// leaves (ShardRules) backward overwrites grads(unit) for every micro-batch, and the store adds them up.
  /// The parts of ranks along tp and cp are then summed for each micro-batch, so that leaves do not depend on
  /// the number of ranks.
  virtual void reduce(int unit, bool last) = 0;
  /// True if every call of reduce() takes the gradients away, so that backward overwrites grads(unit) for
  /// each micro-batch.
  virtual bool takes_gradients() const { return false; }
  /// Returns grads(unit) as bytes that may hold anything from a step's update to the unit's backward in the
  /// next step; undefined where a step has several backward passes, or gradients are shared or partly frozen.
  virtual Tensor lent(int /*unit*/) { return {}; }
  /// Waits until all gradients are final.
  virtual void finish() = 0;
  /// Ranges that this rank owns: one per unit, in forward order. Optimizer, clipping and checkpoint walk
  /// these. Their weights may change after this call and after finish(), and are read again at the next
  /// acquire; call owned() first to change them at another time.
  virtual std::vector<OwnedRange>& owned() = 0;
  /// Return parameter i of a unit, and its gradient after finish(), to inspect them between two passes.
  /// Collective over the unit's owners. The gradient is undefined when the parameter is frozen. Views where
  /// units are whole, else copies.
  virtual Tensor param(int unit, size_t i);
  virtual Tensor grad(int unit, size_t i) { return grads(unit)[i]; }
  /// Returns all elements of a unit, given the fp32 values `owned` of the elements that this rank owns.
  /// Collective over the unit's owners. Returns `owned` itself where units are whole, else a copy.
  virtual Tensor whole(int /*unit*/, const Tensor& owned) { return owned; }
};

/// Store of one rank, which holds all bytes.
class LocalUnits : public UnitStore {
 public:
  LocalUnits(const std::vector<UnitSpec>& specs, at::ScalarType dtype, const at::Device& device, UnitUse use,
             PartialGradients partial = {}, const ShardRules& rules = {});
  int num_units() const override { return static_cast<int>(units_.size()); }
  const UnitLayout& layout(int unit) const override { return units_[static_cast<size_t>(unit)].layout(); }
  const Views& acquire(int unit, Pass) override { return at(unit).params(); }
  void release(int, Pass) override {}
  void begin_step() override;
  Views& grads(int unit) override { return at(unit).grads(); }
  void reduce(int unit, bool last) override;
  bool takes_gradients() const override { return has_leaves_; }
  Tensor lent(int unit) override;
  void finish() override {}
  std::vector<OwnedRange>& owned() override { return owned_; }

  /// Units whose memory the store uses.
  std::vector<GatheredUnit>& gathered() { return units_; }

 protected:
  GatheredUnit& at(int unit) { return units_[static_cast<size_t>(unit)]; }

 private:
  std::vector<GatheredUnit> units_;
  std::vector<OwnedRange> owned_;
  PartialGradients partial_;
  std::vector<TreeSum> trees_;  // one for each unit
  ShardRules rules_;
  bool has_leaves_ = false;  // the trees have several leaves
};

/// One sum of gradients over ranks that have the same gradients, in the background, exchanged as fp32 or as
/// bf16: every rank gets the same bits. Used by one thread. Call finish() before the group and the gradients
/// are destroyed.
class GradientSum {
 public:
  /// `grads`: fp32, overwritten by the sum; undefined: there is nothing to sum. With bf16, memory for the
  /// exchanged numbers is allocated here.
  GradientSum(const Tensor& grads, bool bf16);
  /// Starts the sum. Collective on `ranks`. Do not read or write the gradients until finish().
  void start(Communicator& ranks);
  /// Waits for the sum. Does nothing if none was started.
  void finish();
  /// Memory of the exchanged numbers; undefined if there are none.
  const Tensor& sent() const { return sent_.defined() ? sent_ : grads_; }

 private:
  Tensor grads_, sent_;  // sent_: bf16, or undefined
  std::unique_ptr<Pending> pending_;
};

/// Ranks that sum the gradient of a unit.
struct UnitGroup {
  Communicator& owners;    // share the unit's parameters
  Communicator& replicas;  // own the same range of it in other copies
};

/// Groups that a rank shares the work with. They must outlive the store.
struct UnitGroups {
  /// Returns the group of a unit. Units of one store may have different ones.
  std::function<UnitGroup(const UnitSpec&)> of;
  /// Ranks along tp: each has a part of the model's matrices as its units (tp_units), and shards these as if
  /// they were a model. nullptr: this rank alone.
  Communicator* tp = nullptr;
  /// Ranks along cp, neighbours among the owners: each has the gradients of its part of every sequence.
  /// nullptr: this rank alone.
  Communicator* cp = nullptr;
};

/// Data parallel: every rank has all parameters and computes on its own sequences. Gradients are summed over
/// the replicas of each unit, while the backward pass of the last micro-batch continues below.
class ReplicatedUnits final : public LocalUnits {
 public:
  ReplicatedUnits(const std::vector<UnitSpec>& specs, at::ScalarType dtype, const at::Device& device,
                  UnitUse use, const ShardRules& rules, const UnitGroups& groups,
                  PartialGradients partial = {});
  void reduce(int unit, bool last) override;
  void finish() override;

 private:
  std::vector<Communicator*> replicas_;  // of each unit
  std::vector<GradientSum> sums_;        // likewise; empty ones for frozen units
  std::vector<std::shared_ptr<void>> registrations_;
};

/// Makes the store for one rank, for replicas, or for ranks that share their units by `rules`. Collective on
/// the group along tp.
std::unique_ptr<UnitStore> make_unit_store(const std::vector<UnitSpec>& specs, at::ScalarType dtype,
                                           const at::Device& device, UnitUse use, const ShardRules& rules,
                                           const UnitGroups& groups);

}  // namespace tycho
