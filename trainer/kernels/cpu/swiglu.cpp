// SwiGLU on the CPU, one pass.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"

namespace tycho::TYCHO_ISA {
namespace {

TYCHO_SIMD Vec sigmoid(Vec x) { return 1.0f / (1.0f + exp(-x)); }

template <class T>
void forward(RowsShape shape, const T* gate_up, T* y) {
  for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const T* gate = gate_up + row * 2 * shape.dim;
      const T* up = gate + shape.dim;
      T* out = y + row * shape.dim;
      for_lanes(shape.dim, [&](int64_t i, auto lanes) {
        const Vec g = load(gate + i, lanes);
        store(out + i, g * sigmoid(g) * load(up + i, lanes), lanes);
      });
    }
  });
}

/// silu(g) = g s, s = sigmoid(g); silu'(g) = s (1 + g (1 - s)).
template <class T>
void backward(RowsShape shape, const T* gate_up, const T* dy, T* dgate_up, T* y) {
  for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const int64_t gate = row * 2 * shape.dim, up = gate + shape.dim, out = row * shape.dim;
      for_lanes(shape.dim, [&](int64_t i, auto lanes) {
        const Vec g = load(gate_up + gate + i, lanes), u = load(gate_up + up + i, lanes),
                  d = load(dy + out + i, lanes);
        const Vec s = sigmoid(g), silu = g * s;
        store(y + out + i, silu * u, lanes);
        store(dgate_up + gate + i, d * u * (s + silu * (1.0f - s)), lanes);
        store(dgate_up + up + i, d * silu, lanes);
      });
    }
  });
}

}  // namespace

void swiglu(RowsShape shape, Dtype dtype, const void* gate_up, void* y, Stream) {
  if (dtype == Dtype::kFp32)
    forward(shape, static_cast<const float*>(gate_up), static_cast<float*>(y));
  else
    forward(shape, static_cast<const Bf16*>(gate_up), static_cast<Bf16*>(y));
}

void swiglu_backward(RowsShape shape, Dtype dtype, const void* gate_up, const void* dy, void* dgate_up,
                     void* y, Stream) {
  if (dtype == Dtype::kFp32)
    backward(shape, static_cast<const float*>(gate_up), static_cast<const float*>(dy),
             static_cast<float*>(dgate_up), static_cast<float*>(y));
  else
    backward(shape, static_cast<const Bf16*>(gate_up), static_cast<const Bf16*>(dy),
             static_cast<Bf16*>(dgate_up), static_cast<Bf16*>(y));
}

}  // namespace tycho::TYCHO_ISA
