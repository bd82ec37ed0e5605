// RMSNorm on the GPU: a warp per group forward; backward a block per run of groups, a warp or the whole
// block for one of them, with partial sums of dweight added in order.
#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/norm_rows.cuh"
#include "trainer/kernels/cuda/partials.cuh"
#include "trainer/kernels/cuda/status.h"

namespace tycho::cuda {
namespace {

constexpr int kLinesPerBlock = 4;  // a line is one group of one row

template <int width, NormForm form, class T>
__global__ void forward(NormShape shape, const T* x, NormRows<T> rows, const T* weight, float offset,
                        float eps, T* y, float* inv_rms) {
  const int64_t line = static_cast<int64_t>(blockIdx.x) * kLinesPerBlock + threadIdx.y;
  if (line >= shape.rows * shape.groups) return;
  const int64_t row = line / shape.groups, group = line % shape.groups;
  x += row * shape.x_step + group * shape.dim;
  y += row * shape.y_step + group * shape.dim;
  float squares = 0;
  for (int64_t i = threadIdx.x * width; i < shape.dim; i += kWarp * width) {
    const auto value = norm_input<form, width>(rows, row * shape.dim, x, i);
#pragma unroll
    for (int k = 0; k < width; ++k) squares += value.at[k] * value.at[k];
  }
  const float inverse = rsqrtf(warp_sum(squares) / static_cast<float>(shape.dim) + eps);
  if constexpr (adds_before(form)) x = rows.sum + row * shape.dim;  // this thread has written what it reads
  write_normed<form, width>(rows, shape.dim, row, y, [&](int64_t i) {
    auto value = load<width>(x + i);
    const auto scale = load<width>(weight + i);
#pragma unroll
    for (int k = 0; k < width; ++k) value.at[k] *= inverse * (scale.at[k] + offset);
    return value;
  });
  if (threadIdx.x == 0) inv_rms[line] = inverse;
}

/// With xhat = x * inv_rms and g = dy * (offset + weight): dx = inv_rms * (g - xhat * mean(g * xhat));
/// dweight += dy * xhat. Each thread keeps its own columns of its line's dweight in shared memory.
template <int width, bool add, class T>
__global__ void backward(NormShape shape, const T* x, const T* weight, float offset, const float* inv_rms,
                         const T* dy, T* dx, float* partials) {
  extern __shared__ __align__(16) float sums_of_lines[];
  float* dweight = sums_of_lines + threadIdx.y * shape.dim;
  for (int64_t i = threadIdx.x * width; i < shape.dim; i += blockDim.x * width)
    store_shared<width>(dweight + i, Pack<float, width>{});
  const int64_t lines = shape.rows * shape.groups, run = ceil_div(lines, gridDim.x);
  const int64_t first = blockIdx.x * run, end = first + run < lines ? first + run : lines;
  for (int64_t line = first + threadIdx.y; line < end; line += blockDim.y) {
    const int64_t row = line / shape.groups, group = line % shape.groups * shape.dim;
    const T *row_x = x + row * shape.x_step + group, *row_dy = dy + row * shape.y_step + group;
    T* row_dx = dx + row * shape.dx_step + group;
    const float inverse = inv_rms[line];
    float products = 0;
    for (int64_t i = threadIdx.x * width; i < shape.dim; i += blockDim.x * width) {
      const auto value = load<width>(row_x + i), gradient = load<width>(row_dy + i),
                 scale = load<width>(weight + i);
#pragma unroll
      for (int k = 0; k < width; ++k) products += gradient.at[k] * (scale.at[k] + offset) * value.at[k];
    }
    const float slope = line_sum(products) * inverse * inverse * inverse / static_cast<float>(shape.dim);
    for (int64_t i = threadIdx.x * width; i < shape.dim; i += blockDim.x * width) {
      const auto value = load<width>(row_x + i), gradient = load<width>(row_dy + i),
                 scale = load<width>(weight + i);
      auto sums = load<width>(dweight + i);
      Pack<float, width> out{};
      if constexpr (add) out = load<width>(row_dx + i);
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const float scaled = gradient.at[k] * inverse;
        sums.at[k] += scaled * value.at[k];
        out.at[k] += scaled * (scale.at[k] + offset) - value.at[k] * slope;
      }
      store_shared<width>(dweight + i, sums);
      store<width>(row_dx + i, out);
    }
  }
  __syncthreads();
  store_line_sums<width>(shape.dim, sums_of_lines, partials);
}

template <int width, bool add, class T>
void launch_backward(NormShape shape, const T* x, const T* weight, float offset, const float* inv_rms,
                     const T* dy, T* dx, float* partials, cudaStream_t stream) {
  const auto kernel = backward<width, add, T>;
  const dim3 threads = norm_threads(shape.dim, width);
  const size_t shared_bytes = static_cast<size_t>(threads.y * shape.dim) * sizeof(float);
  allow_shared_memory("rms_norm_backward", kernel, shared_bytes);
  kernel<<<runs_of(shape), threads, shared_bytes, stream>>>(shape, x, weight, offset, inv_rms, dy, dx,
                                                            partials);
}

}  // namespace

void rms_norm(NormShape shape, Dtype dtype, const void* x, const void* weight, float weight_offset, float eps,
              void* y, float* inv_rms, NormAdds adds, CastRows casts, Stream stream) {
  const int64_t lines = shape.rows * shape.groups;
  if (lines == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool packs = norm_packs_fit<T>(shape, x, weight, y, adds.before, adds.sum, adds.after, casts.codes);
    with_width<T>(packs, [&](auto width) {
      with_form<T>(adds, casts, [&](auto known) {
        forward<decltype(width)::count, decltype(known)::form>
            <<<ceil_div(lines, kLinesPerBlock), dim3(kWarp, kLinesPerBlock), 0, native(stream)>>>(
                shape, static_cast<const T*>(x), NormRows<T>(adds, casts), static_cast<const T*>(weight),
                weight_offset, eps, static_cast<T*>(y), inv_rms);
      });
    });
  });
  check_launch("rms_norm");
}

int64_t rms_norm_backward_workspace(NormShape shape) { return runs_of(shape) * shape.dim; }

void rms_norm_backward(NormShape shape, Dtype dtype, const void* x, const void* weight, float weight_offset,
                       const float* inv_rms, const void* dy, void* dx, bool add_to_dx, float* dweight,
                       bool add_to_dweight, float* workspace, Stream stream) {
  const int64_t runs = runs_of(shape);
  if (runs > 0)
    with_type(dtype, [&](auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      with_width<T>(norm_packs_fit<T>(shape, x, weight, dy, dx, workspace), [&](auto width) {
        constexpr int kWidth = decltype(width)::count;
        const auto launch =
            add_to_dx ? &launch_backward<kWidth, true, T> : &launch_backward<kWidth, false, T>;
        launch(shape, static_cast<const T*>(x), static_cast<const T*>(weight), weight_offset, inv_rms,
               static_cast<const T*>(dy), static_cast<T*>(dx), workspace, native(stream));
      });
    });
  if (dweight) add_partials(shape.dim, runs, workspace, dweight, add_to_dweight, native(stream));
  check_launch("rms_norm_backward");
}

}  // namespace tycho::cuda
