// Rotary positions on the GPU: a block per row, a pair of packs per thread.
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/rope.cuh"

namespace tycho::cuda {
namespace {

template <int width, class T>
__global__ void rotate(RopeShape shape, const float* cos_sin, float sign, T* qkv) {
  const int64_t row = blockIdx.x;
  const int half = static_cast<int>(shape.rotary_dim / 2), packs = half / width;
  const float* cosine = cos_sin + (shape.first_position + row % shape.seq) * shape.rotary_dim;
  for (int pair = threadIdx.x; pair < shape.rotated_heads * packs; pair += blockDim.x) {
    const int head = pair / packs, i = pair % packs * width;
    T* lower = qkv + row * shape.row_width + head * shape.head_dim + i;
    auto a = load<width>(lower), b = load<width>(lower + half);
    turn(a, b, cosine + i, half, sign);
    store<width>(lower, a);
    store<width>(lower + half, b);
  }
}

}  // namespace

void rope(RopeShape shape, Dtype dtype, const float* cos_sin, bool inverse, void* qkv, Stream stream) {
  if (shape.rows == 0 || shape.rotated_heads == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool full = packs_fit<T>(shape.rotary_dim / 2, qkv, cos_sin) &&
                      shape.head_dim % kFullWidth<T> == 0 && shape.row_width % kFullWidth<T> == 0;
    with_width<T>(full, [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      const int threads = threads_for(shape.rotated_heads * shape.rotary_dim / 2 / kWidth, 256);
      rotate<kWidth><<<shape.rows, threads, 0, native(stream)>>>(shape, cos_sin, inverse ? -1.0f : 1.0f,
                                                                 static_cast<T*>(qkv));
    });
  });
  check_launch("rope");
}

}  // namespace tycho::cuda
