// Six rows of a tile of 16 columns in AVX2 instructions: the twelve sums, two vectors of the right operand
// and one of the left fill the registers, and the compiler finds no order of four steps without spills.
#pragma once
#include <cstdint>

namespace tycho::TYCHO_ISA {

// clang-format off
#define TYCHO_ROW(element, low, high)                  \
  "vbroadcastss " element ", %%ymm14\n"                \
  "vfmadd231ps %%ymm12, %%ymm14, %%ymm" low "\n"       \
  "vfmadd231ps %%ymm13, %%ymm14, %%ymm" high "\n"
// A step: `b` is where the right operand's row lies, a_0 to a_5 the six elements of the left one.
#define TYCHO_STEP(b, a_0, a_1, a_2, a_3, a_4, a_5)                                               \
  "vmovups " b ", %%ymm12\n"                                                                      \
  "vmovups 32" b ", %%ymm13\n"                                                                    \
  TYCHO_ROW(a_0, "0", "1") TYCHO_ROW(a_1, "2", "3") TYCHO_ROW(a_2, "4", "5")                      \
  TYCHO_ROW(a_3, "6", "7") TYCHO_ROW(a_4, "8", "9") TYCHO_ROW(a_5, "10", "11")
// The left operand's rows are a_step apart, and its elements of one row touch.
#define TYCHO_STEP_OF_ROWS(k, b)                                                                  \
  TYCHO_STEP(b, k "(%[a])", k "(%[a],%[as])", k "(%[a],%[as],2)",                                 \
             k "(%[a3])", k "(%[a3],%[as])", k "(%[a3],%[as],2)")
// The six elements of a step touch.
#define TYCHO_STEP_OF_COLUMN(a, b) TYCHO_STEP(b, a, "4" a, "8" a, "12" a, "16" a, "20" a)

#define TYCHO_ON_SUMS(op)                                                                         \
  op("(%[c])", "0") op("32(%[c])", "1") op("(%[c],%[cs])", "2") op("32(%[c],%[cs])", "3")         \
  op("(%[c],%[cs],2)", "4") op("32(%[c],%[cs],2)", "5") op("(%[c3])", "6") op("32(%[c3])", "7")   \
  op("(%[c3],%[cs])", "8") op("32(%[c3],%[cs])", "9") op("(%[c3],%[cs],2)", "10")                 \
  op("32(%[c3],%[cs],2)", "11")
#define TYCHO_LOAD(at, sum) "vmovups " at ", %%ymm" sum "\n"
#define TYCHO_ZERO(at, sum) "vxorps %%ymm" sum ", %%ymm" sum ", %%ymm" sum "\n"
#define TYCHO_STORE(at, sum) "vmovups %%ymm" sum ", " at "\n"

#define TYCHO_SIX_ROWS(first, four_steps, step)                                                   \
  asm volatile(first                                                                              \
      "mov %[depth], %[left]\n shr $2, %[left]\n jz 2f\n .p2align 5\n"                            \
      "1:\n" four_steps "dec %[left]\n jnz 1b\n"                                                  \
      "2: mov %[depth], %[left]\n and $3, %[left]\n jz 4f\n"                                      \
      "3:\n" step "dec %[left]\n jnz 3b\n"                                                        \
      "4:\n" TYCHO_ON_SUMS(TYCHO_STORE)                                                           \
      : [a] "+r"(a), [a3] "+r"(a3), [b] "+r"(b), [b3] "+r"(b3), [left] "=&r"(left)                \
      : [as] "r"(a_bytes), [bs] "r"(b_bytes), [c] "r"(c), [c3] "r"(c3), [cs] "r"(c_bytes), [depth] "m"(depth) \
      : "memory", "cc", "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9", \
        "ymm10", "ymm11", "ymm12", "ymm13", "ymm14")
#define TYCHO_ROWS_STEPS                                                                          \
  TYCHO_STEP_OF_ROWS("", "(%[b])") TYCHO_STEP_OF_ROWS("4", "(%[b],%[bs])")                        \
  TYCHO_STEP_OF_ROWS("8", "(%[b],%[bs],2)") TYCHO_STEP_OF_ROWS("12", "(%[b3])")                   \
  "add $16, %[a]\n add $16, %[a3]\n lea (%[b],%[bs],4), %[b]\n lea (%[b3],%[bs],4), %[b3]\n"
#define TYCHO_ROWS_STEP                                                                           \
  TYCHO_STEP_OF_ROWS("", "(%[b])") "add $4, %[a]\n add $4, %[a3]\n add %[bs], %[b]\n"
#define TYCHO_COLUMN_STEPS                                                                        \
  TYCHO_STEP_OF_COLUMN("(%[a])", "(%[b])") TYCHO_STEP_OF_COLUMN("(%[a],%[as])", "(%[b],%[bs])")   \
  TYCHO_STEP_OF_COLUMN("(%[a],%[as],2)", "(%[b],%[bs],2)") TYCHO_STEP_OF_COLUMN("(%[a3])", "(%[b3])") \
  "lea (%[a],%[as],4), %[a]\n lea (%[a3],%[as],4), %[a3]\n"                                       \
  "lea (%[b],%[bs],4), %[b]\n lea (%[b3],%[bs],4), %[b3]\n"
#define TYCHO_COLUMN_STEP                                                                         \
  TYCHO_STEP_OF_COLUMN("(%[a])", "(%[b])") "add %[as], %[a]\n add %[bs], %[b]\n"
// clang-format on

/// c [6, 16] = a [6, depth] · b [depth, 16], or += when Add; steps in elements. With RowsTouch, element (row,
/// k) of a is a[k * a_step + row], otherwise a[row * a_step + k].
template <bool Add, bool RowsTouch>
static inline void product_of_six_rows(const float* a, int64_t a_step, const float* b, int64_t b_step,
                                       int64_t depth, float* c, int64_t c_step) {
  constexpr int64_t kBytes = sizeof(float);
  const int64_t a_bytes = a_step * kBytes, b_bytes = b_step * kBytes, c_bytes = c_step * kBytes;
  const float *a3 = a + 3 * a_step, *b3 = b + 3 * b_step;
  float* c3 = c + 3 * c_step;
  int64_t left;
  if constexpr (Add && RowsTouch)
    TYCHO_SIX_ROWS(TYCHO_ON_SUMS(TYCHO_LOAD), TYCHO_COLUMN_STEPS, TYCHO_COLUMN_STEP);
  else if constexpr (RowsTouch)
    TYCHO_SIX_ROWS(TYCHO_ON_SUMS(TYCHO_ZERO), TYCHO_COLUMN_STEPS, TYCHO_COLUMN_STEP);
  else if constexpr (Add)
    TYCHO_SIX_ROWS(TYCHO_ON_SUMS(TYCHO_LOAD), TYCHO_ROWS_STEPS, TYCHO_ROWS_STEP);
  else
    TYCHO_SIX_ROWS(TYCHO_ON_SUMS(TYCHO_ZERO), TYCHO_ROWS_STEPS, TYCHO_ROWS_STEP);
}

#undef TYCHO_ROW
#undef TYCHO_STEP
#undef TYCHO_STEP_OF_ROWS
#undef TYCHO_STEP_OF_COLUMN
#undef TYCHO_ON_SUMS
#undef TYCHO_LOAD
#undef TYCHO_ZERO
#undef TYCHO_STORE
#undef TYCHO_SIX_ROWS
#undef TYCHO_ROWS_STEPS
#undef TYCHO_ROWS_STEP
#undef TYCHO_COLUMN_STEPS
#undef TYCHO_COLUMN_STEP

}  // namespace tycho::TYCHO_ISA
