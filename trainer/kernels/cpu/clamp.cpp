// Bounds on every element, on the CPU.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"

namespace tycho::TYCHO_ISA {
namespace {

template <class T>
void forward(int64_t n, float limit, const void* x, void* y) {
  for_row_blocks(n, 1, [&](int64_t first, int64_t count) {
    const T* from = static_cast<const T*>(x) + first;
    T* to = static_cast<T*>(y) + first;
    for_lanes(count, [&](int64_t i, auto lanes) {
      store(to + i, at_most(broadcast(limit), at_least(broadcast(-limit), load(from + i, lanes))), lanes);
    });
  });
}

template <class T>
void backward(int64_t n, float limit, const void* x, const void* dy, void* dx) {
  for_row_blocks(n, 1, [&](int64_t first, int64_t count) {
    for_lanes(count, [&](int64_t offset, auto lanes) {
      const int64_t i = first + offset;
      const Vec value = load(static_cast<const T*>(x) + i, lanes);
      const Vec gradient = load(static_cast<const T*>(dy) + i, lanes);
      store(static_cast<T*>(dx) + i, (value <= limit) & (value >= -limit) ? gradient : Vec{}, lanes);
    });
  });
}

}  // namespace

void clamp(int64_t n, Dtype dtype, float limit, const void* x, void* y, Stream) {
  const auto run = dtype == Dtype::kFp32 ? &forward<float> : &forward<Bf16>;
  run(n, limit, x, y);
}

void clamp_backward(int64_t n, Dtype dtype, float limit, const void* x, const void* dy, void* dx, Stream) {
  const auto run = dtype == Dtype::kFp32 ? &backward<float> : &backward<Bf16>;
  run(n, limit, x, dy, dx);
}

}  // namespace tycho::TYCHO_ISA
