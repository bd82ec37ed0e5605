// Twelve rows of a tile of 32 columns: 24 sums in registers of 512 bits, two for the right operand, the rest
// for the left one's elements.
#pragma once
#include "trainer/kernels/cpu/matmul/tile_elements.h"
#include "trainer/kernels/cpu/simd.h"

namespace tycho::TYCHO_ISA {

/// Hides the origin of a pointer from the compiler, which would otherwise make a pointer for each row, run
/// out of registers and keep them on the stack.
template <class T>
TYCHO_SIMD T* own_register(T* pointer) {
  asm("" : "+r"(pointer));
  return pointer;
}

/// Twelve rows that are `step` apart, with a pointer to every third one.
template <class T>
struct TwelveRows {
  T* thirds[4];
  int64_t step;

  TYCHO_SIMD_MEMBER TwelveRows(T* first, int64_t apart)
      : thirds{first, own_register(first + 3 * apart), own_register(first + 6 * apart),
               own_register(first + 9 * apart)},
        step(apart) {}
  TYCHO_SIMD_MEMBER T* row(int number) const { return thirds[number / 3] + number % 3 * step; }
};

/// Adds Steps steps of the depth, without a branch. With RowsTouch, a's rows are contiguous, and its steps
/// are a.step apart.
template <int Steps, bool RowsTouch, class E>
TYCHO_SIMD void add_steps_of_twelve(Vec (&sums)[12][2], TwelveRows<const E>& a, const E*& b, int64_t b_step) {
#pragma GCC unroll 4
  for (int k = 0; k < Steps; ++k) {
    const Vec low = lanes_of(b), high = lanes_of(b + kLanes);
#pragma GCC unroll 12
    for (int row = 0; row < 12; ++row) {
      const Vec x = spread(RowsTouch ? a.thirds[0][row] : *a.row(row));
      sums[row][0] = add_product(E{}, sums[row][0], x, low);
      sums[row][1] = add_product(E{}, sums[row][1], x, high);
    }
    b = own_register(b + b_step);
#pragma GCC unroll 4
    for (int i = 0; i < (RowsTouch ? 1 : 4); ++i)
      a.thirds[i] = own_register(a.thirds[i] + (RowsTouch ? a.step : 1));
  }
}

inline constexpr int64_t kPieceBytes = 128;  // of a row that is read soon, fetched at once
inline constexpr int64_t kPieceSteps = 4;    // of the depth, which fetch one piece

/// Pieces of memory that is read soon, `step` bytes apart.
struct NextPieces {
  const char* next;
  int64_t step;
};

/// c [12, 32] = a [12, depth] · b [depth, 32], or += when Add; steps in elements. With RowsTouch, element
/// (row, k) of a is a[k * a_step + row], otherwise a[row * a_step + k]. Fetches what is
/// ahead: a piece in kPieceSteps steps of the depth.
template <bool Add, bool RowsTouch, class E>
__attribute__((noinline)) static void product_of_twelve_rows(const E* a, int64_t a_step, const E* b,
                                                             int64_t b_step, int64_t depth, float* c,
                                                             int64_t c_step, NextPieces ahead) {
  const TwelveRows<float> to(c, c_step);
  TwelveRows<const E> from(a, a_step);
  Vec sums[12][2];
#pragma GCC unroll 12
  for (int row = 0; row < 12; ++row) {
    sums[row][0] = Add ? load(to.row(row), Full{}) : Vec{};
    sums[row][1] = Add ? load(to.row(row) + kLanes, Full{}) : Vec{};
  }
  for (int64_t left = depth / kPieceSteps; left > 0; --left) {
    // To the L2 cache: the L1 has its own strip.
    __builtin_prefetch(ahead.next, 0, 2);
    __builtin_prefetch(ahead.next + 64, 0, 2);
    ahead.next = own_register(ahead.next + ahead.step);
    add_steps_of_twelve<kPieceSteps, RowsTouch>(sums, from, b, b_step);
  }
  for (int64_t left = depth % kPieceSteps; left > 0; --left)
    add_steps_of_twelve<1, RowsTouch>(sums, from, b, b_step);
#pragma GCC unroll 12
  for (int row = 0; row < 12; ++row) {
    store(to.row(row), sums[row][0], Full{});
    store(to.row(row) + kLanes, sums[row][1], Full{});
  }
}

}  // namespace tycho::TYCHO_ISA
