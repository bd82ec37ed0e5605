// Matrices in fp8 with a factor for each row, and their products.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/kernels/twins/row_extras.h"

namespace tycho {

/// Element (r, d) is codes[r, d] * factors[r]. A product sums over d: GPUs multiply fp8 only where that is
/// the contiguous dim of both operands.
struct Fp8Matrix {
  Tensor codes_RD;  // Float8_e4m3fn or Float8_e5m2
  Tensor factors_R;
};
/// Elements that share a scale: a row of the result, or all rows of a section.
enum class Fp8Group { kRow, kWhole };

/// Makes largest magnitudes those of the whole matrix, in place, where ranks have parts of it. Collective.
using ShareMaxima = std::function<void(Tensor& amax)>;

/// Returns x, or its transpose, in fp8. x: bf16, rows may be apart. Scales and codes are torchao's: scale =
/// 448 (or 57344) / largest magnitude, codes rounded to nearest even within that limit. NaN makes its group
/// NaN. sections: numbers of rows of the result, one after the other; empty: one of all. share: called for
/// the magnitudes of each section, before they become scales; empty: x is the whole matrix.
Fp8Matrix to_fp8(const Tensor& x, bool transposed, Fp8Group group, Fp8Rule rule,
                 const std::vector<int64_t>& sections = {}, const ShareMaxima& share = {});

/// Returns the transpose of a matrix whose rows have the same factor.
Fp8Matrix fp8_transposed(const Fp8Matrix& matrix);

// A matrix of bf16 that ranks hold parts of is cast in three steps, to the codes and factors of
// to_fp8(matrix, false, Fp8Group::kWhole, {}): x_N are some of its elements, one after the other, N > 0.
/// Returns the largest magnitude of x_N, [1] of fp32; NaN wins.
Tensor fp8_amax(const Tensor& x_N);
/// Writes the codes (e4m3) of x_N. amax_1: the largest magnitude of the whole matrix.
void fp8_codes(const Tensor& x_N, const Tensor& amax_1, Tensor& codes_N);
/// Returns the factors of matrices with these largest magnitudes.
Tensor fp8_factors(const Tensor& amax_P);

/// A cast to e4m3 that the kernel which computes x makes along with x: codes, or the largest magnitudes of
/// rows, from which the scale of all of them follows.
class RowCast {
 public:
  /// Reads x's shape and device only. x: bf16 [N, D].
  RowCast(const Tensor& x, Fp8Group group, bool power_of_two);
  /// True if the cast needs no x in memory once the kernel has run.
  bool is_made() const { return !amax_R_.defined(); }
  /// Returns the memory that a kernel of this shape writes. Throws Error that names the op when the cast is
  /// one of other rows.
  CastRows memory(std::string_view op, RowsShape shape, const Tensor& like);
  /// Returns x in fp8, that of to_fp8(x, false, group, {kE4m3, power_of_two}). Call after the kernel.
  Fp8Matrix finish(const Tensor& x);

 private:
  bool power_of_two_;
  Fp8Matrix made_;
  Tensor amax_R_;  // undefined: each row has its own scale
};

/// out = left · rightᵀ (+ added, which may be out or undefined). N rows of left, M of right. bf16 out, or
/// fp32 out of gradients of weights. On a CPU sums are in fp32 and rounded once; a GPU has at::_scaled_mm,
/// whose result is rounded to bf16 before something is added. fast: a GPU may sum with fewer bits.
void fp8_product(const Fp8Matrix& left, const Fp8Matrix& right, const Tensor& added_NM, bool fast,
                 Tensor& out_NM);

}  // namespace tycho
