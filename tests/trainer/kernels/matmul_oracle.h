// Matrix products in double, and how far from them a product in fp32 or bf16 may be.
#pragma once
#include "tests/trainer/aten.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// left [rows, depth] · right [columns, depth]ᵀ (+ added).
struct ProductOracle {
  /// Operands of any dtype.
  ProductOracle(const Tensor& left, const Tensor& right);

  /// Checks every element. `roundings`: how often a route rounds what ends in bf16; ours does it once, ATen
  /// may round the product and then the sum with what was there.
  void expect_near(const Tensor& actual, const Tensor* added = nullptr, int roundings = 1) const;

  Tensor product, magnitudes;  // in double; the latter: of sums of the terms' magnitudes
  int64_t terms;
};

}  // namespace tycho
