// Gradients of attention into rows, on the GPU: a block per row; a thread moves a pair of packs that rotate
// together, or a pack that does not rotate.
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/rope.cuh"

namespace tycho::cuda {
namespace {

template <int width, class T>
__global__ void pack(AttentionShape s, HeadRows dq, HeadRows dk, HeadRows dv, Rotations tables,
                     AttentionGradients to) {
  const int64_t row = blockIdx.x;
  const int heads = static_cast<int>(s.heads), kv_heads = static_cast<int>(s.kv_heads);
  const int dim = static_cast<int>(s.head_dim), half = static_cast<int>(tables.rotary_dim / 2);
  const int pairs = half / width, moves = pairs + (dim - 2 * half) / width;  // of a head
  const int64_t angles = row % s.seq * tables.rotary_dim;
  for (int move = threadIdx.x; move < (heads + 2 * kv_heads) * moves; move += blockDim.x) {
    const int head = move / moves, i = move % moves, kv_head = head - heads;
    const bool is_query = kv_head < 0, is_value = kv_head >= kv_heads;
    const T* from = static_cast<const T*>(is_query ? dq.data : is_value ? dv.data : dk.data);
    from += row * (is_query ? dq.row_step : is_value ? dv.row_step : dk.row_step);
    from += (is_query   ? head
             : is_value ? kv_head - kv_heads
                        : kv_head) *
            (is_query   ? dq.head_step
             : is_value ? dv.head_step
                        : dk.head_step);
    T* packed = is_query ? static_cast<T*>(to.dq) + row * to.q_step + head * dim
                         : static_cast<T*>(to.dkv) + row * to.kv_step + kv_head * dim;
    if (i >= pairs) {
      const int at = 2 * half + (i - pairs) * width;
      store<width>(packed + at, load<width>(from + at));
      continue;
    }
    const int at = i * width;
    auto a = load<width>(from + at), b = load<width>(from + at + half);
    if (!is_value) turn(a, b, (is_query ? tables.queries : tables.keys) + angles + at, half, -1.0f);
    store<width>(packed + at, a);
    store<width>(packed + at + half, b);
  }
}

}  // namespace

void pack_gradients(AttentionShape s, Dtype dtype, HeadRows dq, HeadRows dk, HeadRows dv, Rotations tables,
                    AttentionGradients to, Stream stream) {
  const int64_t rows = s.batch * s.seq, half = tables.rotary_dim / 2;
  if (rows == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const int64_t steps = dq.row_step | dq.head_step | dk.row_step | dk.head_step | dv.row_step |
                          dv.head_step | to.q_step | to.kv_step | s.head_dim | half;
    const bool full =
        packs_fit<T>(steps, dq.data, dk.data, dv.data, to.dq, to.dkv, tables.queries, tables.keys);
    with_width<T>(full, [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      const int64_t moves = (s.heads + 2 * s.kv_heads) * (s.head_dim - half) / kWidth;
      pack<kWidth, T><<<rows, threads_for(moves, 256), 0, native(stream)>>>(s, dq, dk, dv, tables, to);
    });
  });
  check_launch("pack_gradients");
}

}  // namespace tycho::cuda
