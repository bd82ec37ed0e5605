// Holds the bytes of units. Models only acquire and release, so they work the same on one rank and on a
// thousand.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "trainer/kernels/tensor.h"
#include "trainer/layout/param_spec.h"
#include "trainer/layout/sum_tree.h"
#include "trainer/layout/unit_layout.h"
#include "trainer/layout/unit_shards.h"
#include "trainer/parallel/communicator.h"
#include "trainer/parallel/partial_gradients.h"
#include "trainer/units/gathered_unit.h"
#include "trainer/units/owned_range.h"
#include "trainer/units/tree_sum.h"

namespace tycho {

enum class Pass { kForward, kBackward };

/// Gives a block its full parameters for the time it computes. Collective on the dp_shard axis when sharded.
class UnitStore {
 public:
  virtual ~UnitStore() = default;
  virtual int num_units() const = 0;
  virtual const UnitLayout& layout(int unit) const = 0;
  /// The unit's parameters, complete until release. Waits for them when they are on their way. In stores that
  /// keep whole units, such as the two below, they stay valid after release as well.
  virtual const Views& acquire(int unit, Pass pass) = 0;
  virtual void release(int unit, Pass pass) = 0;
  /// Before the first micro-batch of a step: forgets what a step that failed has left.
  virtual void begin_step() {}
  /// Where backward puts gradients (fp32, the shapes of the parameters); undefined for what is frozen
  /// (GatheredUnit::grads).
  virtual Views& grads(int unit) = 0;
  /// After the backward of each micro-batch, for units that are not frozen: what grads(unit) holds may be
  /// reduced over ranks, in the background. `last`: of the last micro-batch of a step; gradients of all are
  /// in then. A store may wait for that call and reduce the sum, as the two below do; or reduce at every
  /// call, add to what it owns, and leave zeros in grads(unit), to which backward adds the next micro-batch.
  /// With a tree of several leaves (ShardRules) backward overwrites grads(unit) for every micro-batch, and
  /// the last call has the sum. What ranks along tp and cp have of a micro-batch is then summed at once, so
  /// that leaves do not depend on the number of ranks.
  virtual void reduce(int unit, bool last) = 0;
  /// When it returns, all gradients are final.
  virtual void finish() = 0;
  /// What this rank owns: one range per unit, in forward order. Optimizer, clipping and checkpoint walk
  /// these. Their weights may change after this call and after finish(), and are read again at the next
  /// acquire; whoever changes them at another time calls it first.
  virtual std::vector<OwnedRange>& owned() = 0;
  /// The ranks that share a copy of the model out between them: their ranges together are all units, once.
  /// Whatever is summed over owned ranges is summed over these. This rank alone where it owns whole units.
  virtual Communicator& owners() = 0;
  /// For a look at one tensor between two passes, collective over owners(): parameter i of a unit, and its
  /// gradient after finish(), undefined when it is frozen. A view where units are whole, else a copy.
  virtual Tensor param(int unit, size_t i);
  virtual Tensor grad(int unit, size_t i) { return grads(unit)[i]; }
  /// For the same: of all elements of a unit what `owned`, fp32, has of those that this rank owns. Itself
  /// where units are whole, else a copy.
  virtual Tensor whole(int /*unit*/, const Tensor& owned) { return owned; }
};

/// One rank: the bytes are here.
class LocalUnits : public UnitStore {
 public:
  LocalUnits(const std::vector<UnitSpec>& specs, at::ScalarType dtype, const at::Device& device, UnitUse use,
             PartialGradients partial = {}, SumTree tree = {});
  int num_units() const override { return static_cast<int>(units_.size()); }
  const UnitLayout& layout(int unit) const override { return units_[static_cast<size_t>(unit)].layout(); }
  const Views& acquire(int unit, Pass) override { return at(unit).params(); }
  void release(int, Pass) override {}
  void begin_step() override;
  Views& grads(int unit) override { return at(unit).grads(); }
  void reduce(int unit, bool last) override;
  void finish() override {}
  std::vector<OwnedRange>& owned() override { return owned_; }
  Communicator& owners() override { return *alone_; }

  /// The same bytes as units.
  std::vector<GatheredUnit>& gathered() { return units_; }

 protected:
  GatheredUnit& at(int unit) { return units_[static_cast<size_t>(unit)]; }

 private:
  std::vector<GatheredUnit> units_;
  std::vector<OwnedRange> owned_;
  PartialGradients partial_;
  std::vector<TreeSum> trees_;  // of each unit
  bool has_leaves_ = false;     // several of them
  std::unique_ptr<Communicator> alone_ = make_world_of_one();
};

/// One sum of gradients over the ranks that have the same, in the background, as fp32 or as bf16 on the way:
/// every rank gets the same bits. Used by one thread. finish() comes before the group and the gradients go.
class GradientSum {
 public:
  /// grads: fp32, which become the sum; undefined: there is nothing to sum. bf16: the memory of what travels
  /// is taken here.
  GradientSum(const Tensor& grads, bool bf16);
  /// Collective on `ranks`. Nobody reads or writes the gradients until finish().
  void start(Communicator& ranks);
  /// Waits for the sum; nothing where none is on its way.
  void finish();
  /// The memory of what travels; undefined where nothing does.
  const Tensor& sent() const { return sent_.defined() ? sent_ : grads_; }

 private:
  Tensor grads_, sent_;  // sent: bf16, or undefined
  std::unique_ptr<Pending> pending_;
};

/// Data parallel: every rank has all parameters and computes on its own sequences. Gradients are summed over
/// the ranks unit by unit, while the backward pass of the last micro-batch goes on below.
class ReplicatedUnits final : public LocalUnits {
 public:
  /// `world` outlives the store.
  ReplicatedUnits(const std::vector<UnitSpec>& specs, at::ScalarType dtype, const at::Device& device,
                  UnitUse use, const ShardRules& rules, Communicator& world, PartialGradients partial = {});
  void reduce(int unit, bool last) override;
  void finish() override;

 private:
  Communicator& world_;
  std::vector<GradientSum> sums_;  // of each unit; empty ones for what is frozen
  std::vector<std::shared_ptr<void>> registrations_;
};

/// Who a rank shares the work with; all of it outlives the store.
struct UnitGroups {
  Communicator& owners;    // share the parameters of a copy of the model
  Communicator& replicas;  // own the same ones in other copies
  /// Ranks along tp: each has a part of the model's matrices as its units (tp_units), and shares those out as
  /// if they were a model. Null: this one alone.
  Communicator* tp = nullptr;
  /// Ranks along cp, neighbours in `owners`: each has the gradients of its part of every sequence. Null: this
  /// one alone.
  Communicator* cp = nullptr;
};

/// One rank, replicas, or ranks that share their units by `rules`. Collective on the group along tp.
std::unique_ptr<UnitStore> make_unit_store(const std::vector<UnitSpec>& specs, at::ScalarType dtype,
                                           const at::Device& device, UnitUse use, const ShardRules& rules,
                                           UnitGroups groups);

}  // namespace tycho
