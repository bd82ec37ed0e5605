// A store that tells what a model asks of it.
#pragma once
#include <algorithm>
#include <vector>

#include "tests/trainer/aten.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {

/// Counts how often units are acquired, and are reduced after a last micro-batch. With `eager` gradients
/// leave their buffers after every micro-batch and are summed elsewhere.
class CountingUnits final : public UnitStore {
 public:
  explicit CountingUnits(LocalUnits& units, bool eager = false)
      : forward(static_cast<size_t>(units.num_units())),
        backward(forward.size()),
        reduced(forward.size()),
        sums(forward.size()),
        units_(units),
        eager_(eager) {}
  int num_units() const override { return units_.num_units(); }
  const UnitLayout& layout(int unit) const override { return units_.layout(unit); }
  const Views& acquire(int unit, Pass pass) override {
    ++(pass == Pass::kBackward ? backward : forward)[static_cast<size_t>(unit)];
    ++held;
    most_held = std::max(most_held, held);
    return units_.acquire(unit, pass);
  }
  void release(int unit, Pass pass) override {
    --held;
    units_.release(unit, pass);
  }
  Views& grads(int unit) override { return units_.grads(unit); }
  void reduce(int unit, bool last) override {
    const auto u = static_cast<size_t>(unit);
    reduced[u] += last;
    if (!eager_) return;
    at::Tensor flat = units_.gathered()[u].flat_grads();
    sums[u] = sums[u].defined() ? sums[u] + flat : flat.clone();
    flat.zero_();
  }
  void finish() override {}
  std::vector<OwnedRange>& owned() override { return units_.owned(); }

  std::vector<int> forward, backward, reduced;
  int held = 0, most_held = 0;
  std::vector<at::Tensor> sums;

 private:
  LocalUnits& units_;
  bool eager_;
};

}  // namespace tycho
