// Units that a block computes with: its own, and that of its adapters if it has some.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/layout/model_layout.h"
#include "trainer/sharding/gathered_unit.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {

/// Gives a block one list of views, in which those of its adapters follow its own (BlockParams). Used for one
/// block at a time.
class BlockUnits {
 public:
  /// `units` must outlive this object.
  BlockUnits(const ModelLayout& layout, UnitStore& units);

  const Views& acquire(int64_t block, Pass pass);
  void release(int64_t block, Pass pass);
  Views& grads(int64_t block);
  /// True if the block or its adapters are trained.
  bool has_gradients(int64_t block);
  /// Calls UnitStore::reduce for those of the two units that are trained.
  void reduce(int64_t block, bool last);

 private:
  static int own(int64_t block) { return static_cast<int>(block) + 1; }
  /// Number of the block's own parameters and stacks.
  size_t num_views(int64_t block) const { return units_.layout(own(block)).views().size(); }
  int adapters(int64_t block) const { return adapters_[static_cast<size_t>(block)]; }

  UnitStore& units_;
  std::vector<int> adapters_;  // unit of each block's adapters; -1: none
  Views params_, grads_;       // views of the block that computes
};

/// True if any view has a gradient.
bool has_gradients(const Views& grads);

}  // namespace tycho
