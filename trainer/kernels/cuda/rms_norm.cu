// RMSNorm on the GPU: a warp per row forward; backward a block per run of rows, with partial sums of dweight
// added in order.
#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/cuda/kernels.h"

namespace tycho::cuda {
namespace {

constexpr int kRowsPerBlock = 4;

template <int width, class T>
__global__ void forward(RowsShape shape, const T* x, const T* weight, float eps, T* y, float* inv_rms) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.y;
  if (row >= shape.rows) return;
  x += row * shape.dim;
  y += row * shape.dim;
  float squares = 0;
  for (int64_t i = threadIdx.x * width; i < shape.dim; i += kWarp * width) {
    const auto value = load<width>(x + i);
#pragma unroll
    for (int k = 0; k < width; ++k) squares += value.at[k] * value.at[k];
  }
  const float inverse = rsqrtf(warp_sum(squares) / static_cast<float>(shape.dim) + eps);
  for (int64_t i = threadIdx.x * width; i < shape.dim; i += kWarp * width) {
    auto value = load<width>(x + i);
    const auto scale = load<width>(weight + i);
#pragma unroll
    for (int k = 0; k < width; ++k) value.at[k] *= inverse * scale.at[k];
    store<width>(y + i, value);
  }
  if (threadIdx.x == 0) inv_rms[row] = inverse;
}

/// The number of runs of rows; each writes one partial row of dweight.
int64_t runs_of(RowsShape shape) {
  const int64_t wanted = (int64_t{1} << 20) / (shape.dim > 0 ? shape.dim : 1);
  const int64_t runs = wanted < 128 ? 128 : wanted > 1024 ? 1024 : wanted;
  return shape.rows < runs ? shape.rows : runs;
}

/// With xhat = x * inv_rms and g = dy * weight: dx = inv_rms * (g - xhat * mean(g * xhat)); dweight += dy *
/// xhat. Each thread keeps its own columns of dweight in shared memory.
template <int width, bool add, class T>
__global__ void backward(RowsShape shape, const T* x, const T* weight, const float* inv_rms, const T* dy,
                         T* dx, float* partials) {
  extern __shared__ __align__(16) float dweight[];
  for (int64_t i = threadIdx.x * width; i < shape.dim; i += blockDim.x * width)
    store<width>(dweight + i, Pack<float, width>{});
  const int64_t run = ceil_div(shape.rows, gridDim.x), first = blockIdx.x * run;
  const int64_t end = first + run < shape.rows ? first + run : shape.rows;
  for (int64_t row = first; row < end; ++row) {
    const int64_t at = row * shape.dim;
    const float inverse = inv_rms[row];
    float products = 0;
    for (int64_t i = threadIdx.x * width; i < shape.dim; i += blockDim.x * width) {
      const auto value = load<width>(x + at + i), gradient = load<width>(dy + at + i),
                 scale = load<width>(weight + i);
#pragma unroll
      for (int k = 0; k < width; ++k) products += gradient.at[k] * scale.at[k] * value.at[k];
    }
    const float slope = block_sum(products) * inverse * inverse * inverse / static_cast<float>(shape.dim);
    for (int64_t i = threadIdx.x * width; i < shape.dim; i += blockDim.x * width) {
      const auto value = load<width>(x + at + i), gradient = load<width>(dy + at + i),
                 scale = load<width>(weight + i);
      auto sums = load<width>(dweight + i);
      Pack<float, width> out{};
      if constexpr (add) out = load<width>(dx + at + i);
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const float scaled = gradient.at[k] * inverse;
        sums.at[k] += scaled * value.at[k];
        out.at[k] += scaled * scale.at[k] - value.at[k] * slope;
      }
      store<width>(dweight + i, sums);
      store<width>(dx + at + i, out);
    }
  }
  for (int64_t i = threadIdx.x * width; i < shape.dim; i += blockDim.x * width)
    store<width>(partials + blockIdx.x * shape.dim + i, load<width>(dweight + i));
}

/// 32 columns a block; the rows of threads share out the partial rows, and their sums are added in order.
__global__ void add_partials(int64_t dim, int64_t runs, const float* partials, float* dweight, bool add) {
  __shared__ float sums[kWarp][kWarp + 1];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  float sum = 0;
  if (column < dim)
    for (int64_t run = threadIdx.y; run < runs; run += kWarp) sum += partials[run * dim + column];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  const float total = warp_sum(sums[threadIdx.x][threadIdx.y]);
  const int64_t out = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.y;
  if (threadIdx.x == 0 && out < dim) dweight[out] = total + (add ? dweight[out] : 0.0f);
}

template <int width, bool add, class T>
void launch_backward(RowsShape shape, const T* x, const T* weight, const float* inv_rms, const T* dy, T* dx,
                     float* partials, cudaStream_t stream) {
  const auto kernel = backward<width, add, T>;
  const size_t shared_bytes = static_cast<size_t>(shape.dim) * sizeof(float);
  if (shared_bytes > 48 * 1024)
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
  kernel<<<runs_of(shape), threads_for(shape.dim / width, 512), shared_bytes, stream>>>(
      shape, x, weight, inv_rms, dy, dx, partials);
}

}  // namespace

void rms_norm(RowsShape shape, Dtype dtype, const void* x, const void* weight, float eps, void* y,
              float* inv_rms, Stream stream) {
  if (shape.rows == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    with_width<T>(packs_fit<T>(shape.dim, x, weight, y), [&](auto width) {
      forward<decltype(width)::count>
          <<<ceil_div(shape.rows, kRowsPerBlock), dim3(kWarp, kRowsPerBlock), 0, native(stream)>>>(
              shape, static_cast<const T*>(x), static_cast<const T*>(weight), eps, static_cast<T*>(y),
              inv_rms);
    });
  });
  check_launch("rms_norm");
}

int64_t rms_norm_backward_workspace(RowsShape shape) { return runs_of(shape) * shape.dim; }

void rms_norm_backward(RowsShape shape, Dtype dtype, const void* x, const void* weight, const float* inv_rms,
                       const void* dy, void* dx, bool add_to_dx, float* dweight, bool add_to_dweight,
                       float* workspace, Stream stream) {
  if (shape.rows > 0)
    with_type(dtype, [&](auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      with_width<T>(packs_fit<T>(shape.dim, x, weight, dy, dx, workspace), [&](auto width) {
        constexpr int kWidth = decltype(width)::count;
        const auto launch =
            add_to_dx ? &launch_backward<kWidth, true, T> : &launch_backward<kWidth, false, T>;
        launch(shape, static_cast<const T*>(x), static_cast<const T*>(weight), inv_rms,
               static_cast<const T*>(dy), static_cast<T*>(dx), workspace, native(stream));
      });
    });
  add_partials<<<ceil_div(shape.dim, kWarp), dim3(kWarp, kWarp), 0, native(stream)>>>(
      shape.dim, runs_of(shape), workspace, dweight, add_to_dweight);
  check_launch("rms_norm_backward");
}

}  // namespace tycho::cuda
