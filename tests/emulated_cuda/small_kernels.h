// Small kernels for the emulator's tests, right and wrong ones; each function launches one.
#pragma once
#include <cstddef>
#include <cstdint>

namespace small {

/// out[i] = i for n elements; every launch has 4 blocks of 64 threads unless said.
void count_up(int64_t n, int* out);
/// Without `if (i < n)`.
void count_up_without_a_tail(int64_t n, int* out);
/// number[t] = how many threads of a block of 64 started before t.
void note_order(int* number);
/// 0, 1, 2, ...; from 0 again. The emulator does not look into it: all threads write one place there.
int next_number(bool again);
/// out[t] = what thread t ^ 1 put into shared memory.
void swap_neighbours(bool barrier, const float* in, float* out);
/// out[t] = what thread t ^ distance put there; only a __syncwarp in between.
void swap_in_warps(int distance, const float* in, float* out);
/// Adds shared memory that nobody wrote.
void sum_of_nothing(float* out);
/// Lane l gets what lane l + 1 has; lane `lost` has returned before (-1: none).
void shift_down(int lost, const double* in, double* out);
/// Bits of the lanes whose element is positive.
void vote(const float* in, unsigned* out);
/// Takes the value of a lane that its mask does not name.
void shuffle_outside_the_mask(float* out);
/// Half of the threads wait at a barrier, the others return.
void half_a_barrier();
/// Halves of a block wait at two barriers.
void two_barriers();
/// All blocks write out[0].
void write_one_place(int* out);
/// One thread reads what another one writes.
void read_what_is_written(int* out);
/// out[0] = in[at].
void read_at(int64_t at, const float* in, float* out);
/// out[0] = shared[at] of 64.
void read_shared_at(int at, float* out);
/// Four floats at once.
void copy_packs(const float* in, float* out);
/// *out = a * b.
void multiply(int a, int b, int* out);
/// Nothing, in that shape.
void launch(int64_t grid_x, int64_t grid_y, int64_t threads_x, int64_t threads_y);
/// out[0] = 1, with `dynamic_bytes` of shared memory beside 128 static ones; allowed >= 0 asks for it first.
bool take_shared(size_t dynamic_bytes, int64_t allowed, int* out);

}  // namespace small
