// The rows of a norm on the CPU: their additions, and their casts to fp8.
#pragma once
#include <cstdint>

#include "trainer/kernels/cpu/fp8_codes.h"
#include "trainer/kernels/cpu/simd.h"
#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/kernels/twins/row_extras.h"

namespace tycho::TYCHO_ISA {

/// Place of a norm's additions.
enum class Adding { kNone, kBefore, kAfter };

/// Returns x as memory of T would hold it: a sum that follows is rounded on its own.
template <class T>
TYCHO_SIMD Vec as_stored(Vec x) {
  if constexpr (sizeof(T) == sizeof(float)) {
    __asm__("" : "+m"(x));  // no product becomes part of a fused multiply-add
    return x;
  } else {
    return widen(narrow(x));
  }
}

/// A group of a row.
template <Adding adding, class T>
struct NormRow {
  int64_t row, dim;
  const T* x;
  const T* before;
  T* sum;
  const T* after;
  T* y;
  const CastRows& casts;

  /// Returns elements of the norm's input, and writes a sum.
  template <class Lanes>
  TYCHO_SIMD_MEMBER Vec input(int64_t i, Lanes lanes) const {
    if constexpr (adding != Adding::kBefore) return load(x + i, lanes);
    store(sum + i, load(x + i, lanes) + load(before + i, lanes), lanes);
    return load(sum + i, lanes);
  }
  /// Returns the input where it lies in memory, after input() of all elements.
  const T* normed() const { return adding == Adding::kBefore ? sum : x; }
  /// Writes the result, given normed elements: norm_at(i, lanes). Elements that are cast are computed again.
  template <class NormAt>
  TYCHO_SIMD_MEMBER void write(const NormAt& norm_at) const {
    if constexpr (adding != Adding::kAfter && sizeof(T) == sizeof(Bf16))
      if (any_casts(casts))
        cast_row_at(dim, row, casts, [&](int64_t i, auto lanes) { return as_stored<T>(norm_at(i, lanes)); });
    for_lanes(dim, [&](int64_t i, auto lanes) {
      Vec out = norm_at(i, lanes);
      if constexpr (adding == Adding::kAfter) out = as_stored<T>(out) + load(after + i, lanes);
      store(y + i, out, lanes);
    });
  }
};

/// The rows of a norm.
template <Adding adding, class T>
struct NormRows {
  NormShape shape;
  const T* x;
  T* y;
  const NormAdds& adds;
  const CastRows& casts;

  NormRow<adding, T> at(int64_t row, int64_t group) const {
    const int64_t first = group * shape.dim, own = row * shape.dim;
    NormRow<adding, T> line = {row,     shape.dim, x + row * shape.x_step + first, nullptr,
                               nullptr, nullptr,   y + row * shape.y_step + first, casts};
    if constexpr (adding == Adding::kBefore) {
      line.before = static_cast<const T*>(adds.before) + own;
      line.sum = static_cast<T*>(adds.sum) + own;
    }
    if constexpr (adding == Adding::kAfter) line.after = static_cast<const T*>(adds.after) + own;
    return line;
  }
};

/// Calls body with the rows of a norm.
template <class T, class Body>
TYCHO_SIMD void with_rows(NormShape shape, const void* x, void* y, const NormAdds& adds,
                          const CastRows& casts, const Body& body) {
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  if (adds.before)
    body(NormRows<Adding::kBefore, T>{shape, from, to, adds, casts});
  else if (adds.after)
    body(NormRows<Adding::kAfter, T>{shape, from, to, adds, casts});
  else
    body(NormRows<Adding::kNone, T>{shape, from, to, adds, casts});
}

}  // namespace tycho::TYCHO_ISA
