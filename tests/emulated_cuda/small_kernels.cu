// Small kernels for the emulator's tests: right ones, and one for each mistake that it names.
#include "tests/emulated_cuda/small_kernels.h"

#include <cuda_runtime.h>

namespace small {
namespace {

__global__ void count_up_kernel(int64_t n, int* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<int>(i);
}
__global__ void tailless_kernel(int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = i;
}
__global__ void note_order_kernel(int* number) { number[threadIdx.x] = next_number(false); }

__global__ void swap_kernel(bool barrier, const float* in, float* out) {
  __shared__ float kept[64];
  kept[threadIdx.x] = in[threadIdx.x];
  if (barrier) __syncthreads();
  out[threadIdx.x] = kept[threadIdx.x ^ 1];
}
__global__ void swap_warp_kernel(int distance, const float* in, float* out) {
  __shared__ float kept[64];
  kept[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  out[threadIdx.x] = kept[threadIdx.x ^ distance];
}
__global__ void sum_kernel(float* out) {
  __shared__ float values[4];
  out[0] = values[0] + values[3];
}

__global__ void shift_kernel(int lost, const double* in, double* out) {
  const int lane = threadIdx.x;
  if (lane == lost) return;
  out[lane] = __shfl_down_sync(0xffffffffu, in[lane], 1);
}
__global__ void vote_kernel(const float* in, unsigned* out) {
  const unsigned votes = __ballot_sync(0xffffffffu, in[threadIdx.x] > 0);
  if (threadIdx.x == 0) *out = votes;
}
__global__ void shuffle_outside_the_mask_kernel(float* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0x0000ffffu, 1.0f, 20);
}

__global__ void half_kernel() {
  if (threadIdx.x < 32) __syncthreads();
}
__global__ void two_kernel() {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
}

__global__ void one_place_kernel(int* out) {
  if (threadIdx.x == 0) *out = 1;
}
__global__ void read_written_kernel(int* out) {
  if (threadIdx.x == 5) out[0] = 1;
  if (threadIdx.x == 40) out[1] = out[0];
}
__global__ void read_at_kernel(int64_t at, const float* in, float* out) {
  if (threadIdx.x == 0) out[0] = in[at];
}
__global__ void read_shared_kernel(int at, float* out) {
  __shared__ float values[64];
  values[threadIdx.x] = 0;
  __syncthreads();
  const float* start = values;
  if (threadIdx.x == 0) out[0] = start[at];
}

struct alignas(16) Four {
  float at[4];
};
__global__ void packs_kernel(const float* in, float* out) {
  *reinterpret_cast<Four*>(out) = *reinterpret_cast<const Four*>(in);
}
__global__ void multiply_kernel(int a, int b, int* out) { *out = a * b; }
__global__ void nothing_kernel(int) {}

__global__ void shared_kernel(int* out) {
  __shared__ float fixed[32];
  extern __shared__ __align__(16) float wanted[];
  if (threadIdx.x > 0) return;
  fixed[0] = 1.0f;
  wanted[0] = fixed[0];
  *out = static_cast<int>(wanted[0]);
}

}  // namespace

void count_up(int64_t n, int* out) { count_up_kernel<<<4, 64>>>(n, out); }
void count_up_without_a_tail(int64_t n, int* out) { tailless_kernel<<<(n + 63) / 64, 64>>>(out); }
void note_order(int* number) {
  next_number(true);
  note_order_kernel<<<1, 64>>>(number);
}
void swap_neighbours(bool barrier, const float* in, float* out) { swap_kernel<<<1, 64>>>(barrier, in, out); }
void swap_in_warps(int distance, const float* in, float* out) {
  swap_warp_kernel<<<1, 64>>>(distance, in, out);
}
void sum_of_nothing(float* out) { sum_kernel<<<1, 1>>>(out); }
void shift_down(int lost, const double* in, double* out) { shift_kernel<<<1, 32>>>(lost, in, out); }
void vote(const float* in, unsigned* out) { vote_kernel<<<1, 32>>>(in, out); }
void shuffle_outside_the_mask(float* out) { shuffle_outside_the_mask_kernel<<<1, 32>>>(out); }
void half_a_barrier() { half_kernel<<<1, 64>>>(); }
void two_barriers() { two_kernel<<<1, 64>>>(); }
void write_one_place(int* out) { one_place_kernel<<<4, 64>>>(out); }
void read_what_is_written(int* out) { read_written_kernel<<<1, 64>>>(out); }
void read_at(int64_t at, const float* in, float* out) { read_at_kernel<<<1, 64>>>(at, in, out); }
void read_shared_at(int at, float* out) { read_shared_kernel<<<1, 64>>>(at, out); }
void copy_packs(const float* in, float* out) { packs_kernel<<<1, 1>>>(in, out); }
void multiply(int a, int b, int* out) { multiply_kernel<<<1, 1>>>(a, b, out); }
void launch(int64_t grid_x, int64_t grid_y, int64_t threads_x, int64_t threads_y) {
  nothing_kernel<<<dim3(grid_x, grid_y), dim3(threads_x, threads_y)>>>(0);
}
bool take_shared(size_t dynamic_bytes, int64_t allowed, int* out) {
  if (allowed >= 0 && cudaFuncSetAttribute(reinterpret_cast<const void*>(shared_kernel),
                                           cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(allowed)) != cudaSuccess)
    return false;
  shared_kernel<<<1, 32, dynamic_bytes>>>(out);
  return true;
}

}  // namespace small
