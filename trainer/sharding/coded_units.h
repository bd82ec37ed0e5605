// The units of a store that are gathered as codes of fp8.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/coded_unit.h"
#include "trainer/layout/param_spec.h"
#include "trainer/sharding/coded_unit.h"

namespace tycho {

/// Makes the codes again when weights have changed. Ranks share the largest magnitudes of each matrix, so
/// that codes are those of one rank.
class CodedUnits {
 public:
  /// tp: ranks that have parts of the same matrices; nullptr: this rank alone. They gather the same units.
  CodedUnits(size_t num_units, Communicator* tp) : units_(num_units), tp_(tp) {}

  /// Returns the places of each unit, those that ranks along tp agree on. Collective along tp.
  static std::vector<std::optional<CodedUnitLayout>> places(const std::vector<UnitSpec>& specs,
                                                            const std::vector<Communicator*>& owners,
                                                            Communicator* tp);
  /// The ranks that own it must outlive this object.
  void add(size_t unit, CodedUnit coded, Communicator& owners);
  /// Returns null for a unit that is gathered as it is.
  CodedUnit* of(int unit);
  /// Makes all codes, unless they are those of that version of the weights. Collective on the owners of all
  /// units and along tp.
  void make(int64_t version);

 private:
  struct Owned {
    CodedUnit coded;
    Communicator* owners;
  };
  std::vector<std::optional<Owned>> units_;
  Communicator* tp_;
  int64_t version_ = 0;
};

}  // namespace tycho
