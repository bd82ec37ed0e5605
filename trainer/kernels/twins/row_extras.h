// Extra work of a kernel on rows in the same pass: additions around a norm, casts to fp8. Torch-free.
#pragma once
#include <cstdint>

namespace tycho {

/// Rows that a norm adds: contiguous [rows, dim] of its dtype, for one group. Each sum is rounded to the
/// dtype, as a pass of its own would round it.
struct NormAdds {
  const void* before = nullptr;  // the norm is of sum = x + before
  void* sum = nullptr;           // written with `before`; may be x or before
  const void* after = nullptr;   // y = norm + after; may be y. Not with `before`
};

/// Casts of bf16 rows [rows, dim] by the kernel that computes them, of e4m3. Contiguous; null: not made.
struct CastRows {
  bool power_of_two = false;   // see Fp8Rule
  uint8_t* codes = nullptr;    // with a scale for each row
  float* factors_R = nullptr;  // with codes
  float* amax_R = nullptr;     // largest |y| of each row; NaN wins
};

}  // namespace tycho
