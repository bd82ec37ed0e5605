// Holds the bytes of units. Models only acquire and release, so they work the same on one rank and on a
// thousand.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "trainer/parallel/communicator.h"
#include "trainer/units/flat_unit.h"

namespace tycho {

enum class Pass { kForward, kBackward };

/// Gives a block its full parameters for the time it computes. Collective on the dp_shard axis when sharded.
class UnitStore {
 public:
  virtual ~UnitStore() = default;
  virtual int num_units() const = 0;
  /// The unit's parameters, complete until release. Waits for them when they are on their way.
  virtual const Views& acquire(int unit, Pass pass) = 0;
  virtual void release(int unit, Pass pass) = 0;
  /// Where backward puts gradients (fp32, the shapes of the parameters); undefined for what is frozen
  /// (FlatUnit::grads).
  virtual Views& grads(int unit) = 0;
  /// After the last micro-batch, for units that are not frozen: this unit's gradients are complete here and
  /// may be reduced over ranks, in the background.
  virtual void reduce(int unit) = 0;
  /// When it returns, all gradients are final.
  virtual void finish() = 0;
  /// What this rank owns: the optimizer and the checkpoint walk these.
  virtual std::vector<FlatUnit>& owned() = 0;
};

/// One rank: the bytes are here.
class LocalUnits : public UnitStore {
 public:
  explicit LocalUnits(std::vector<FlatUnit> units) : units_(std::move(units)) {}
  int num_units() const override { return static_cast<int>(units_.size()); }
  const Views& acquire(int unit, Pass) override { return at(unit).params(); }
  void release(int, Pass) override {}
  Views& grads(int unit) override { return at(unit).grads(); }
  void reduce(int) override {}
  void finish() override {}
  std::vector<FlatUnit>& owned() override { return units_; }

 private:
  FlatUnit& at(int unit) { return units_[static_cast<size_t>(unit)]; }
  std::vector<FlatUnit> units_;
};

/// Data parallel: every rank has all parameters and computes on its own sequences. Gradients are summed over
/// the ranks unit by unit, while the backward pass goes on below.
class ReplicatedUnits final : public LocalUnits {
 public:
  /// `world` outlives the store.
  ReplicatedUnits(std::vector<FlatUnit> units, Communicator& world)
      : LocalUnits(std::move(units)), world_(world) {}
  void reduce(int unit) override;
  void finish() override;

 private:
  Communicator& world_;
  std::vector<std::unique_ptr<Pending>> on_their_way_;
};

/// For the ranks of `world`, which outlives it.
std::unique_ptr<UnitStore> make_unit_store(std::vector<FlatUnit> units, Communicator& world);

}  // namespace tycho
