// Dropout on the CPU.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"
#include "trainer/kernels/cpu/philox_lanes.h"
#include "trainer/kernels/twins/dropout_bits.h"

namespace tycho::TYCHO_ISA {
namespace {

static_assert(kDropoutCounters % kLanes == 0);

/// Drops elements of one row; `row` is its number in the mask.
template <class T>
void drop_row(uint64_t key, uint64_t row, DropoutFactors factors, int64_t dim, const T* x, const T* residual,
              T* y) {
  const auto drop = [&](int64_t i, Bits words, auto lanes) {
    const Bits kept = (Bits)(words >= factors.first_kept);
    Vec out = (Vec)((Bits)(load(x + i, lanes) * factors.scale) & kept);
    if (residual) out += load(residual + i, lanes);
    store(y + i, out, lanes);
  };
  for (int64_t block = 0; block < dim; block += kDropoutBlock)
    for (int64_t counter = 0; counter < kDropoutCounters; counter += kLanes) {
      const PhiloxWords words =
          philox_lanes(key, static_cast<uint64_t>(block / kDropoutBlock * kDropoutCounters + counter), row);
      for (int word = 0; word < 4; ++word) {
        const int64_t i = block + word * kDropoutCounters + counter;
        if (i + kLanes <= dim)
          drop(i, words.at[word], Full{});
        else if (i < dim)
          drop(i, words.at[word], Part{static_cast<int>(dim - i)});
      }
    }
}

template <class T>
void drop(RowsShape shape, const DropoutMask& mask, const void* x, const void* residual, void* y) {
  const DropoutFactors factors = dropout_factors(mask);
  for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const int64_t at = row * shape.dim;
      drop_row(mask.key, static_cast<uint64_t>(mask.first_row + row), factors, shape.dim,
               static_cast<const T*>(x) + at, residual ? static_cast<const T*>(residual) + at : nullptr,
               static_cast<T*>(y) + at);
    }
  });
}

}  // namespace

void dropout(RowsShape shape, Dtype dtype, DropoutMask mask, const void* x, const void* residual, void* y,
             Stream) {
  const auto run = dtype == Dtype::kFp32 ? &drop<float> : &drop<Bf16>;
  run(shape, mask, x, residual, y);
}

}  // namespace tycho::TYCHO_ISA
