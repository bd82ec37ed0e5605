// The input of a branch of a block: rows, and their fp8 form where the norm that computes them makes it.
#pragma once
#include <optional>

#include "trainer/kernels/fp8.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

struct BranchInput {
  const Tensor& x_SD;
  std::optional<Fp8Matrix> in_fp8 = std::nullopt;

  /// Returns the fp8 form, or null.
  const Fp8Matrix* fp8() const { return in_fp8 ? &*in_fp8 : nullptr; }
};

}  // namespace tycho
