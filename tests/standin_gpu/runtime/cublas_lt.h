// The arithmetic of cuBLASLt's products.
#pragma once
#include <cstdint>

namespace standin {

/// Element (i, j) is number i * row_step + j * column_step of fp32 or bf16; null data stands for nothing.
struct LtMatrix {
  const void* data = nullptr;
  bool bf16 = false;
  int64_t row_step = 0, column_step = 0;
};
/// d [m, n] = a [m, k] · b [k, n] + c + bias of each row; sums of a's rows and of b's columns over k.
struct LtProduct {
  int64_t m = 0, n = 0, k = 0;
  int64_t parts = 1;  // of k, summed apart
  LtMatrix a, b, c, d;
  LtMatrix bias, sums_of_a, sums_of_b;
  LtMatrix gelu;  // d is gelu_tanh of what is written here, or d is multiplied by its derivative here
  bool is_gelu_gradient = false;
};

/// Sums in fp32 and rounds once.
void multiply(const LtProduct& product);

}  // namespace standin
