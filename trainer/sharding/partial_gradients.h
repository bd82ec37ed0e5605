// Sums gradients whose parts are on ranks along tp although each rank has the whole parameter: norms over a
// rank's own tokens, key heads that several ranks use.
#pragma once
#include <memory>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/param_spec.h"
#include "trainer/sharding/gathered_unit.h"

namespace tycho {

/// Sums over ranks along tp for each unit's gradients. Used by one thread; collectives of one group in one
/// order.
class PartialGradients {
 public:
  /// Makes an object that sums nothing.
  PartialGradients() = default;
  /// `specs`: the units of this rank (tp_units); `tp`: the ranks along tp, which must outlive this object.
  /// Collective on tp.
  PartialGradients(const std::vector<UnitSpec>& specs, Communicator& tp);

  /// Sums the gradients of a unit. Collective on tp. `grads`: of all parameters of the unit
  /// (GatheredUnit::grads).
  void sum(int unit, Views& grads);

 private:
  /// Consecutive elements along a dim of a parameter.
  struct Span {
    size_t param = 0;
    int dim = 0;
    int64_t begin = 0, size = 0;
  };
  struct Sums {
    std::vector<Span> copies, all;
  };
  static Sums sums_of(const UnitSpec& unit);
  static void sum_together(const std::vector<Span>& spans, Views& grads, Communicator& ranks);

  std::vector<Sums> units_;
  Communicator* tp_ = nullptr;
  std::unique_ptr<Communicator> copies_;  // ranks that have the same key heads
};

}  // namespace tycho
