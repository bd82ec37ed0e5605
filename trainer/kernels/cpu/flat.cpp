// Passes over flat buffers on the CPU: sum of squares, casts, accumulation.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"

namespace tycho::TYCHO_ISA {
namespace {

template <class From, class To>
void copy(int64_t n, const void* x, void* y) {
  for_row_blocks(n, 1, [&](int64_t first, int64_t count) {
    const From* from = static_cast<const From*>(x) + first;
    To* to = static_cast<To*>(y) + first;
    for_lanes(count, [&](int64_t i, auto lanes) { store(to + i, load(from + i, lanes), lanes); });
  });
}

template <class T>
void add(int64_t n, const T* x, float* y) {
  for_row_blocks(n, 1, [&](int64_t first, int64_t count) {
    for_lanes(count, [&](int64_t offset, auto lanes) {
      const int64_t i = first + offset;
      store(y + i, load(y + i, lanes) + load(x + i, lanes), lanes);
    });
  });
}

/// Sums squares in double, as on the GPU: the square of a large fp32 overflows. Half a vector of floats fills
/// a register with doubles; several sums at once, because each addition waits for the previous one to its
/// sum.
double squares_of(int64_t n, const float* x) {
  constexpr int kHalf = kLanes / 2, kSums = 4;
  using Floats = float __attribute__((vector_size(kHalf * 4)));
  using Doubles = double __attribute__((vector_size(kHalf * 8)));
  Doubles sums[kSums]{};
  int64_t i = 0;
  for (; i + kSums * kHalf <= n; i += kSums * kHalf) {
    for (int k = 0; k < kSums; ++k) {
      Floats values;
      __builtin_memcpy(&values, x + i + k * kHalf, sizeof values);
      const Doubles wide = __builtin_convertvector(values, Doubles);
      sums[k] += wide * wide;
    }
  }
  double total = 0;
  for (; i < n; ++i) total += static_cast<double>(x[i]) * x[i];
  for (const Doubles& sum : sums)
    for (int lane = 0; lane < kHalf; ++lane) total += sum[lane];
  return total;
}

}  // namespace

void sum_of_squares(int64_t n, const float* x, double* sum, Stream) {
  // The division into blocks depends on n alone, so the sum does not depend on the threads.
  constexpr int64_t kMostBlocks = 256;
  double partials[kMostBlocks];
  const int64_t block_size = larger(kBlockElements, ceil_div(n, kMostBlocks));
  const int64_t blocks = ceil_div(n, block_size);
  for_blocks(blocks, n, [&](int64_t block) {
    const int64_t first = block * block_size;
    partials[block] = squares_of(smaller(block_size, n - first), x + first);
  });
  double total = 0;
  for (int64_t block = 0; block < blocks; ++block) total += partials[block];
  *sum += total;
}

void cast(int64_t n, Dtype from, const void* x, Dtype to, void* y, Stream) {
  using Copy = void (*)(int64_t, const void*, void*);
  static constexpr Copy kCopies[2][2] = {{&copy<float, float>, &copy<float, Bf16>},
                                         {&copy<Bf16, float>, &copy<Bf16, Bf16>}};
  kCopies[from == Dtype::kBf16][to == Dtype::kBf16](n, x, y);
}

void add_to_fp32(int64_t n, Dtype dtype, const void* x, float* y, Stream) {
  if (dtype == Dtype::kFp32)
    add(n, static_cast<const float*>(x), y);
  else
    add(n, static_cast<const Bf16*>(x), y);
}

}  // namespace tycho::TYCHO_ISA
