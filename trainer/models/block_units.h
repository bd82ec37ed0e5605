// The units that a block computes with: its own, and that of its adapters where it has some.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/layout/model_layout.h"
#include "trainer/parallel/unit_store.h"
#include "trainer/units/gathered_unit.h"

namespace tycho {

/// A block sees one list of views, in which those of its adapters follow its own. One block at a time.
class BlockUnits {
 public:
  /// `units` outlives it.
  BlockUnits(const ModelLayout& layout, UnitStore& units);

  const Views& acquire(int64_t block, Pass pass);
  void release(int64_t block, Pass pass);
  Views& grads(int64_t block);
  /// Whether the block or its adapters are trained.
  bool has_gradients(int64_t block);
  /// UnitStore::reduce of those that are trained.
  void reduce(int64_t block, bool last);

 private:
  static int own(int64_t block) { return static_cast<int>(block) + 1; }
  int adapters(int64_t block) const { return adapters_[static_cast<size_t>(block)]; }

  UnitStore& units_;
  std::vector<int> adapters_;  // the unit of each block's; -1: none
  Views params_, grads_;       // of the block that computes
};

/// Whether any view has a gradient.
bool has_gradients(const Views& grads);

}  // namespace tycho
