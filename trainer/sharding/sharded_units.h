// Fully sharded data parallel: ranks share every unit, which is whole only while a block computes with it.
#pragma once
#include <memory>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/param_spec.h"
#include "trainer/layout/unit_layout.h"
#include "trainer/layout/unit_shards.h"
#include "trainer/sharding/coded_unit.h"
#include "trainer/sharding/coded_units.h"
#include "trainer/sharding/gathered_unit.h"
#include "trainer/sharding/owned_range.h"
#include "trainer/sharding/partial_gradients.h"
#include "trainer/sharding/tree_sum.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {

/// The owners of a unit hold equal ranges of it: weights, gradients and the
/// optimizer's state. acquire gathers a unit into one of a few buffers, while the next one in the order of
/// use is being gathered; matrices that multiply in fp8 travel as codes if their specs say so. Gradients of a
/// unit are summed over the owners, each of which keeps its range, while the backward pass continues below;
/// its replicas add theirs after the last micro-batch.
class ShardedUnits final : public UnitStore {
 public:
  /// Requires that the owners of each unit divide `rules.num_ranks`, and that `rules.cp` is the size of
  /// groups.cp.
  ShardedUnits(const std::vector<UnitSpec>& specs, at::ScalarType dtype, const at::Device& device,
               UnitUse use, const ShardRules& rules, const UnitGroups& groups, PartialGradients partial = {});

  int num_units() const override { return static_cast<int>(units_.size()); }
  const UnitLayout& layout(int unit) const override { return units_[static_cast<size_t>(unit)].layout; }
  const Views& acquire(int unit, Pass pass) override;
  void release(int unit, Pass pass) override;
  void begin_step() override;
  Views& grads(int unit) override;
  void reduce(int unit, bool last) override;
  bool takes_gradients() const override { return !rules_.keep_grads || rules_.tree.leaves > 1; }
  void finish() override;
  std::vector<OwnedRange>& owned() override;
  Tensor param(int unit, size_t i) override;
  Tensor grad(int unit, size_t i) override;
  Tensor whole(int unit, const Tensor& owned) override;

 private:
  struct Unit {
    UnitLayout layout;
    Communicator &owners, &replicas;
    Tensor params, grads;   // elements that this rank owns, padded; grads undefined when the unit is frozen
    GatheredUnit gathered;  // views of the buffers below
    int param_buffer = 0, grad_buffer = UnitBuffers::kNone;
    TreeSum tree;          // sums of gradients, or of this rank's part of them (add_leaf)
    bool has_sum = false;  // `grads` holds the sum of earlier micro-batches of this step
  };
  struct ParamBuffer {
    Tensor flat;
    int unit = UnitBuffers::kNone;  // unit whose parameters are in the buffer, or being gathered
    int64_t version = 0;            // version of those parameters
    CodedUnit* coded = nullptr;     // they come as codes; null: as they are
    int num_holders = 0;
    std::vector<std::unique_ptr<Pending>> arrivals;
  };
  struct GradBuffer {
    Tensor flat;
    Tensor sent;                    // the gradients as bf16, if they are exchanged so; else undefined
    int unit = UnitBuffers::kNone;  // unit that writes into the buffer
    bool last = false;              // the reduction belongs to the step's last micro-batch
    std::unique_ptr<Pending> reduction;
  };

  void register_buffers();
  Unit& at(int unit) { return units_[static_cast<size_t>(unit)]; }
  ParamBuffer& params_of(int unit) { return param_buffers_[static_cast<size_t>(at(unit).param_buffer)]; }
  GradBuffer& grads_of(int unit) { return grad_buffers_[static_cast<size_t>(at(unit).grad_buffer)]; }
  /// Returns the memory of the exchanged gradients.
  static Tensor& sent_of(GradBuffer& buffer) { return buffer.sent.defined() ? buffer.sent : buffer.flat; }
  /// Returns the part of a buffer that a unit fills, padding included.
  Tensor span(const Tensor& flat, const Unit& unit) const;
  /// Starts to gather parameters together for a pass, unless they are gathered already.
  void start_gather(const std::vector<int>& units, Pass pass);
  /// Returns the calls that gather a unit into its buffer.
  std::vector<GroupedCall> gathers_of(Unit& unit);
  void wait_for(ParamBuffer& buffer);
  /// Returns the units that are used after this one, and may be gathered meanwhile.
  std::vector<int> next_after(int unit, Pass pass);
  /// Adds the gradients of a micro-batch to the tree; ranks along tp and cp have parts of them.
  void add_leaf(int unit, bool last);
  /// Waits until the buffer's gradients are in the owned range of its unit.
  void settle(GradBuffer& buffer);
  /// Marks gathered parameters as outdated.
  void forget_gathered();

  ShardRules rules_;
  Communicator* cp_;
  PartialGradients partial_;
  std::vector<ParamBuffer> param_buffers_;
  std::vector<GradBuffer> grad_buffers_;
  std::vector<Unit> units_;
  CodedUnits coded_;
  std::vector<OwnedRange> owned_;
  std::vector<GradientSum> across_;  // sums over replicas, of each unit
  std::vector<std::shared_ptr<void>> registrations_;
  int lowest_trained_ = 0, num_own_units_ = 0;
  int64_t version_ = 1;
};

}  // namespace tycho
