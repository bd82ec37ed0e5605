// Random bits that decide which elements dropout drops, equal on every device.
#pragma once
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

// Element i of a row uses word i % 64 / 16 of Philox (key, i / 64 * 16 + i % 16, row): the words of 16
// counters serve 64 elements, and lanes that hold neighbouring counters decide about neighbouring elements.
inline constexpr int64_t kDropoutCounters = 16, kDropoutBlock = 4 * kDropoutCounters;

struct DropoutFactors {
  uint32_t first_kept;  // words from here on keep their element
  float scale;          // factor of kept elements
};

// static: each instruction set's object keeps its own copy.
static inline DropoutFactors dropout_factors(const DropoutMask& mask) {
  return {static_cast<uint32_t>(mask.p * 0x1p32), static_cast<float>(1.0 / (1.0 - mask.p))};
}

}  // namespace tycho
