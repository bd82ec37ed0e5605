// Places of a unit's parameters while ranks gather its matrices as codes of fp8. Torch-free: `tycho plan` and
// the engine count the same bytes.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/layout/param_spec.h"

namespace tycho {

/// A buffer for a whole unit holds a code for each element, of which those of matrices count; then the other
/// elements of bf16 that each rank sends; then these elements in their order.
struct CodedUnitLayout {
  /// A matrix of codes, at its elements of the unit. Its rows have factors from first_row on.
  struct Matrix {
    size_t param = 0;
    int64_t first_row = 0, rows = 0;
  };
  /// Consecutive elements that stay bf16; `place`: of the first one among all of them.
  struct Run {
    int64_t begin = 0, end = 0, place = 0;
  };
  std::vector<Matrix> matrices;
  std::vector<Run> rest;
  int64_t num_ranks = 1;
  int64_t codes_each = 0, rest_each = 0;  // elements that a rank sends, padding included
  int64_t rest_at = 0, placed_at = 0;     // bytes of the buffer that come before

  int64_t num_factors() const {
    return matrices.empty() ? 0 : matrices.back().first_row + matrices.back().rows;
  }
  /// Number of bytes of what a rank sends.
  int64_t bytes_each() const { return codes_each + 2 * rest_each; }
};

/// Returns the places of a unit on ranks that share it; none where it has no matrices that multiply codes, or
/// one of them does not begin at a multiple of 16 bytes, or ranks would send no less than all of it as bf16,
/// since too much of it stays bf16.
std::optional<CodedUnitLayout> coded_unit_layout(const UnitSpec& unit, int64_t num_ranks);

}  // namespace tycho
