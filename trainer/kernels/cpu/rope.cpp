// Rotary positions on the CPU.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"

namespace tycho::TYCHO_ISA {
namespace {

template <class T>
void rotate(const RopeShape& shape, const float* cos_sin, float sign, T* qkv) {
  const int64_t half = shape.rotary_dim / 2;
  for_row_blocks(shape.rows, shape.rotated_heads * shape.rotary_dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const float* cosine = cos_sin + (shape.first_position + row % shape.seq) * shape.rotary_dim;
      const float* sine = cosine + half;
      for (int64_t head = 0; head < shape.rotated_heads; ++head) {
        T* lower = qkv + row * shape.row_width + head * shape.head_dim;
        T* upper = lower + half;
        for_lanes(half, [&](int64_t i, auto lanes) {
          const Vec c = load(cosine + i, lanes), s = load(sine + i, lanes) * sign;
          const Vec a = load(lower + i, lanes), b = load(upper + i, lanes);
          store(lower + i, a * c - b * s, lanes);
          store(upper + i, b * c + a * s, lanes);
        });
      }
    }
  });
}

}  // namespace

void rope(RopeShape shape, Dtype dtype, const float* cos_sin, bool inverse, void* qkv, Stream) {
  const float sign = inverse ? -1.0f : 1.0f;
  if (dtype == Dtype::kFp32)
    rotate(shape, cos_sin, sign, static_cast<float*>(qkv));
  else
    rotate(shape, cos_sin, sign, static_cast<Bf16*>(qkv));
}

}  // namespace tycho::TYCHO_ISA
