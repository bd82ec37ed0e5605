// LayerNorm on the GPU: a warp per group forward; backward a block per run of groups, a warp or the whole
// block for one of them, with partial sums of the gradients of weight and bias added in order.
#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/norm_rows.cuh"
#include "trainer/kernels/cuda/partials.cuh"
#include "trainer/kernels/cuda/status.h"

namespace tycho::cuda {
namespace {

constexpr int kLinesPerBlock = 4;  // a line is one group of one row

template <class T>
struct Forward {
  NormShape shape;
  const T* x;
  NormRows<T> rows;
  const T *weight, *bias;
  float eps;
  T* y;
  float *mean, *inv_std;
};

template <int width, NormForm form, class T>
__global__ void forward(Forward<T> a) {
  const int64_t line = static_cast<int64_t>(blockIdx.x) * kLinesPerBlock + threadIdx.y, dim = a.shape.dim;
  if (line >= a.shape.rows * a.shape.groups) return;
  const int64_t row = line / a.shape.groups, group = line % a.shape.groups;
  const T* x = a.x + row * a.shape.x_step + group * dim;
  T* y = a.y + row * a.shape.y_step + group * dim;
  float sum = 0, squares = 0;
  for (int64_t i = threadIdx.x * width; i < dim; i += kWarp * width) {
    const auto value = norm_input<form, width>(a.rows, row * dim, x, i);
#pragma unroll
    for (int k = 0; k < width; ++k) sum += value.at[k];
  }
  if constexpr (adds_before(form)) x = a.rows.sum + row * dim;  // this thread has written what it reads
  const float center = warp_sum(sum) / static_cast<float>(dim);
  // Sums squares around the mean, instead of a difference of squares, which would lose the variance of rows
  // far from 0.
  for (int64_t i = threadIdx.x * width; i < dim; i += kWarp * width) {
    const auto value = load<width>(x + i);
#pragma unroll
    for (int k = 0; k < width; ++k) squares += (value.at[k] - center) * (value.at[k] - center);
  }
  const float inverse = rsqrtf(warp_sum(squares) / static_cast<float>(dim) + a.eps);
  write_normed<form, width>(a.rows, dim, row, y, [&](int64_t i) {
    auto value = load<width>(x + i);
    const auto scale = load<width>(a.weight + i);
    Pack<float, width> shift{};
    if (a.bias) shift = load<width>(a.bias + i);
#pragma unroll
    for (int k = 0; k < width; ++k)
      value.at[k] = (value.at[k] - center) * inverse * scale.at[k] + shift.at[k];
    return value;
  });
  if (threadIdx.x == 0) a.mean[line] = center, a.inv_std[line] = inverse;
}

template <class T>
struct Backward {
  NormShape shape;
  const T *x, *weight;
  const float *mean, *inv_std;
  const T* dy;
  T* dx;
  float *dweights, *dbiases;  // a partial row for every block
};

struct Means {
  float g, g_xhat;
};

/// Returns the means over a line of g = dy * weight and of g * xhat, to every thread of the line.
template <int width, class T>
__device__ Means means_of(int64_t dim, const T* x, const T* dy, const T* weight, float mean, float inv_std) {
  float sum = 0, products = 0;
  for (int64_t i = threadIdx.x * width; i < dim; i += blockDim.x * width) {
    const auto value = load<width>(x + i), gradient = load<width>(dy + i), scale = load<width>(weight + i);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float g = gradient.at[k] * scale.at[k];
      sum += g;
      products += g * (value.at[k] - mean);
    }
  }
  return {line_sum(sum) / static_cast<float>(dim), line_sum(products) * inv_std / static_cast<float>(dim)};
}

/// With xhat = (x - mean) * inv_std and g = dy * weight:
/// dx = inv_std * (g - mean(g) - xhat * mean(g * xhat)); dweight += dy * xhat; dbias += dy.
/// Each thread keeps its own columns of its line's dweight and dbias in shared memory. The bounds leave 64
/// registers, so that wide rows have two blocks on a multiprocessor.
template <int width, bool add, class T>
__global__ void __launch_bounds__(kMostNormThreads, 2) backward(Backward<T> a) {
  extern __shared__ __align__(16) float sums[];
  const int64_t dim = a.shape.dim, step = blockDim.x * width;
  float *const all_dbias = sums + blockDim.y * dim, *const dweight = sums + threadIdx.y * dim;
  float* const dbias = all_dbias + threadIdx.y * dim;
  for (int64_t i = threadIdx.x * width; i < dim; i += step) {
    store_shared<width>(dweight + i, Pack<float, width>{});
    store_shared<width>(dbias + i, Pack<float, width>{});
  }
  const int64_t lines = a.shape.rows * a.shape.groups, run = ceil_div(lines, gridDim.x);
  const int64_t first = blockIdx.x * run, end = first + run < lines ? first + run : lines;
  for (int64_t line = first + threadIdx.y; line < end; line += blockDim.y) {
    const int64_t row = line / a.shape.groups, at = line % a.shape.groups * dim;
    const T *x = a.x + row * a.shape.x_step + at, *dy = a.dy + row * a.shape.y_step + at;
    T* dx = a.dx + row * a.shape.dx_step + at;
    const float mean = a.mean[line], inv_std = a.inv_std[line];
    const Means means = means_of<width>(dim, x, dy, a.weight, mean, inv_std);
    for (int64_t i = threadIdx.x * width; i < dim; i += step) {
      const auto value = load<width>(x + i), gradient = load<width>(dy + i),
                 scale = load<width>(a.weight + i);
      auto weights = load<width>(dweight + i), biases = load<width>(dbias + i);
      Pack<float, width> out{};
      if constexpr (add) out = load<width>(dx + i);
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const float xhat = (value.at[k] - mean) * inv_std;
        weights.at[k] += gradient.at[k] * xhat;
        biases.at[k] += gradient.at[k];
        out.at[k] += (gradient.at[k] * scale.at[k] - means.g - xhat * means.g_xhat) * inv_std;
      }
      store_shared<width>(dweight + i, weights);
      store_shared<width>(dbias + i, biases);
      store<width>(dx + i, out);
    }
  }
  __syncthreads();
  store_line_sums<width>(dim, sums, a.dweights);
  store_line_sums<width>(dim, all_dbias, a.dbiases);
}

template <int width, bool add, class T>
void launch_backward(const Backward<T>& a, cudaStream_t stream) {
  const auto kernel = backward<width, add, T>;
  const dim3 threads = norm_threads(a.shape.dim, width);
  const size_t shared_bytes = 2 * static_cast<size_t>(threads.y * a.shape.dim) * sizeof(float);
  allow_shared_memory("layer_norm_backward", kernel, shared_bytes);
  kernel<<<runs_of(a.shape), threads, shared_bytes, stream>>>(a);
}

}  // namespace

void layer_norm(NormShape shape, Dtype dtype, const void* x, const void* weight, const void* bias, float eps,
                void* y, float* mean, float* inv_std, NormAdds adds, CastRows casts, Stream stream) {
  const int64_t lines = shape.rows * shape.groups;
  if (lines == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const Forward<T> arguments = {shape,
                                  static_cast<const T*>(x),
                                  NormRows<T>(adds, casts),
                                  static_cast<const T*>(weight),
                                  static_cast<const T*>(bias),
                                  eps,
                                  static_cast<T*>(y),
                                  mean,
                                  inv_std};
    const bool packs =
        norm_packs_fit<T>(shape, x, weight, bias, y, adds.before, adds.sum, adds.after, casts.codes);
    with_width<T>(packs, [&](auto width) {
      with_form<T>(adds, casts, [&](auto known) {
        forward<decltype(width)::count, decltype(known)::form>
            <<<ceil_div(lines, kLinesPerBlock), dim3(kWarp, kLinesPerBlock), 0, native(stream)>>>(arguments);
      });
    });
  });
  check_launch("layer_norm");
}

int64_t layer_norm_backward_workspace(NormShape shape) { return 2 * runs_of(shape) * shape.dim; }

void layer_norm_backward(NormShape shape, Dtype dtype, const void* x, const void* weight, const float* mean,
                         const float* inv_std, const void* dy, void* dx, bool add_to_dx, float* dweight,
                         float* dbias, bool add_to_dweight, float* workspace, Stream stream) {
  const int64_t runs = runs_of(shape);
  float* dbiases = workspace + runs * shape.dim;
  if (runs > 0)
    with_type(dtype, [&](auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      const Backward<T> arguments = {
          shape,   static_cast<const T*>(x),  static_cast<const T*>(weight), mean,
          inv_std, static_cast<const T*>(dy), static_cast<T*>(dx),           workspace,
          dbiases};
      with_width<T>(norm_packs_fit<T>(shape, x, weight, dy, dx, workspace), [&](auto width) {
        constexpr int kWidth = decltype(width)::count;
        const auto launch =
            add_to_dx ? &launch_backward<kWidth, true, T> : &launch_backward<kWidth, false, T>;
        launch(arguments, native(stream));
      });
    });
  if (dweight) add_partials(shape.dim, runs, workspace, dweight, add_to_dweight, native(stream));
  if (dbias) add_partials(shape.dim, runs, dbiases, dbias, add_to_dweight, native(stream));
  check_launch("layer_norm_backward");
}

}  // namespace tycho::cuda
