// The emulated GPU runs right kernels in every order, and names the mistakes of wrong ones.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "tests/emulated_cuda/declared.h"
#include "tests/emulated_cuda/emulator.h"
#include "tests/emulated_cuda/memory.h"
#include "tests/emulated_cuda/small_kernels.h"

namespace small {
int next_number(bool again) {
  static int next = 0;
  if (again) next = 0;
  return again ? 0 : next++;
}
}  // namespace small

namespace {

/// Memory that kernels may touch.
template <class T>
struct Buffer {
  explicit Buffer(size_t n, T value = {}) : values(n, value) {
    emulated::remember(values.data(), n * sizeof(T));
  }
  ~Buffer() { emulated::forget(values.data()); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* data() { return values.data(); }
  void count() { std::iota(values.begin(), values.end(), T(0)); }

  std::vector<T> values;
};

std::string error() { return cudaGetErrorString(cudaGetLastError()); }

template <class T>
std::vector<T> numbers(size_t n) {
  std::vector<T> values(n);
  std::iota(values.begin(), values.end(), T(0));
  return values;
}

class EmulatedCuda : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { emulated::set_order(GetParam()); }
  void TearDown() override { emulated::set_order(""), emulated::faults = {}; }
};

TEST_P(EmulatedCuda, RunsEveryThreadOnce) {
  Buffer<int> out(200, -1);
  small::count_up(200, out.data());
  EXPECT_EQ(error(), "no error");
  EXPECT_EQ(out.values, numbers<int>(200));
}

TEST_P(EmulatedCuda, PassesValuesThroughSharedMemoryAndShuffles) {
  Buffer<float> in(64), out(64);
  in.count();
  for (const bool warps : {false, true}) {
    warps ? small::swap_in_warps(1, in.data(), out.data())
          : small::swap_neighbours(true, in.data(), out.data());
    EXPECT_EQ(error(), "no error");
    for (int i = 0; i < 64; ++i) EXPECT_EQ(out.values[i], static_cast<float>(i ^ 1));
  }
  Buffer<double> from(32), shifted(32);
  from.count();
  small::shift_down(-1, from.data(), shifted.data());
  EXPECT_EQ(error(), "no error");
  for (int i = 0; i < 32; ++i) EXPECT_EQ(shifted.values[i], std::min(i + 1, 31));
  Buffer<unsigned> votes(1);
  in.values[0] = -1;
  small::vote(in.data(), votes.data());
  EXPECT_EQ(error(), "no error");
  EXPECT_EQ(votes.values[0], 0xfffffffeu);
}

TEST_P(EmulatedCuda, SeesAMissingBarrierInEveryOrder) {
  Buffer<float> in(64), out(64);
  small::swap_neighbours(false, in.data(), out.data());
  EXPECT_NE(error().find("of shared memory, which thread"), std::string::npos);
  small::swap_in_warps(32, in.data(), out.data());
  EXPECT_NE(error().find("without a barrier in between"), std::string::npos);
  Buffer<int> ints(2);
  small::read_what_is_written(ints.data());
  EXPECT_NE(error().find("without a barrier in between"), std::string::npos);
  small::write_one_place(ints.data());
  EXPECT_NE(error().find("which another block wrote: blocks have no order"), std::string::npos);
}

TEST_P(EmulatedCuda, HoldsKernelsToWhatTheyDeclare) {
  Buffer<float> in(64), out(64);
  const tycho::Access read = {in.data(), 1, 256, 256}, written = {out.data(), 64, 4, 4, /*written=*/true};
  const auto run = [&](const tycho::KernelWork& work) {
    const emulated::DeclaredCall call(work);
    small::swap_neighbours(true, in.data(), out.data());
    const std::string undeclared = error();
    return undeclared == "no error" ? call.untouched() : undeclared;
  };
  EXPECT_EQ(run({read, written}), "");
  const char* const missing = "of a tensor of 256 bytes, which kernel_work.cpp does not declare";
  EXPECT_NE(run({read}).find(missing), std::string::npos);
  EXPECT_NE(run({written}).find(missing), std::string::npos);
  EXPECT_NE(run({written, {in.data(), 1, 128, 128}}).find(missing), std::string::npos);
  EXPECT_EQ(run({read, written, {out.data(), 1, 8, 8}}),
            "a read of byte 0 of row 0 of 1 rows of 8 bytes, access 2");
}

TEST_P(EmulatedCuda, SeesLanesThatAreLost) {
  Buffer<double> in(32), out(32);
  small::shift_down(7, in.data(), out.data());
  EXPECT_NE(error().find("for lanes ffffffff of its warp, of which 00000080 never come"), std::string::npos);
  Buffer<float> floats(32);
  small::shuffle_outside_the_mask(floats.data());
  EXPECT_NE(error().find("wants the value of lane 20, which the mask 0000ffff"), std::string::npos);
}

TEST_P(EmulatedCuda, SeesBarriersThatDiverge) {
  small::half_a_barrier();
  EXPECT_NE(error().find("but thread 63 of the block has returned"), std::string::npos);
  small::two_barriers();
  EXPECT_NE(error().find("thread 0 of the block at that of line"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Orders, EmulatedCuda,
                         testing::Values("forward", "backward", "random", "greedy", "greedy-backward", ""),
                         [](const auto& info) {
                           std::string name = *info.param ? info.param : "rotating";
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(EmulatedOrders, DifferAsTheirNamesSay) {
  Buffer<int> number(64);
  const auto order = [&](const char* name) {
    emulated::set_order(name);
    small::note_order(number.data());
    EXPECT_EQ(error(), "no error");
    emulated::set_order("");
    return number.values;
  };
  std::vector<int> backward = numbers<int>(64);
  std::reverse(backward.begin(), backward.end());
  EXPECT_EQ(order("forward"), numbers<int>(64));
  EXPECT_EQ(order("greedy"), numbers<int>(64));
  EXPECT_EQ(order("backward"), backward);
  EXPECT_EQ(order("greedy-backward"), backward);
  const std::vector<int> random = order("random");
  EXPECT_NE(random, numbers<int>(64));
  EXPECT_NE(random, backward);
  EXPECT_NE(random, order("random"));
}

TEST(EmulatedMemory, IsOnlyWhatIsGiven) {
  Buffer<int> out(100);
  emulated::set_order("forward");
  small::count_up_without_a_tail(100, out.data());
  emulated::set_order("");
  const std::string text = error();
  EXPECT_NE(text.find("tailless_kernel of small_kernels.cu:"), std::string::npos) << text;
  EXPECT_NE(text.find("writes 4 bytes at byte 400 of a tensor of 400 bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("block (1, 0, 0), thread (36, 0, 0) "), std::string::npos) << text;
  Buffer<float> in(8), one(1);
  small::read_at(7, in.data(), one.data());
  EXPECT_EQ(error(), "no error");
  small::read_at(-1, in.data(), one.data());
  EXPECT_NE(error().find("reads 4 bytes"), std::string::npos);
  small::read_at(0, nullptr, one.data());
  EXPECT_NE(error().find("which is nobody's memory"), std::string::npos);
  small::read_shared_at(63, one.data());
  EXPECT_EQ(error(), "no error");
  small::read_shared_at(64, one.data());
  EXPECT_NE(error().find("reads 4 bytes of shared memory beyond what is declared"), std::string::npos);
}

TEST(EmulatedMemory, StartsAsNaNWhenItIsShared) {
  Buffer<float> out(1);
  small::sum_of_nothing(out.data());
  EXPECT_EQ(error(), "no error");
  EXPECT_TRUE(std::isnan(out.values[0]));
}

TEST(EmulatedMemory, IsTouchedAtMultiplesOfThePack) {
  Buffer<float> in(12), out(12);
  auto* const aligned = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(in.data()) + 15) / 16 * 16);
  auto* const to = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(out.data()) + 15) / 16 * 16);
  small::copy_packs(aligned, to);
  EXPECT_EQ(error(), "no error");
  small::copy_packs(aligned + 1, to);
  EXPECT_NE(error().find("where 16 bytes want an address that they divide"), std::string::npos);
}

TEST(EmulatedArithmetic, DoesNotGoBeyondItsType) {
  Buffer<int> out(1);
  small::multiply(1 << 16, 1 << 14, out.data());
  EXPECT_EQ(error(), "no error");
  small::multiply(1 << 16, 1 << 15, out.data());
  EXPECT_NE(error().find("multiplies beyond the type"), std::string::npos);
}

TEST(EmulatedLaunch, RefusesShapesThatAGpuRefuses) {
  small::launch(1, 65535, 1, 1);
  EXPECT_EQ(error(), "no error");
  small::launch(1, 1, 32, 32);
  EXPECT_EQ(error(), "no error");
  small::launch(0, 1, 32, 1);
  EXPECT_NE(error().find("a grid of 0 blocks in dimension 0"), std::string::npos);
  small::launch(1, 65536, 32, 1);
  EXPECT_NE(error().find("a grid of 65536 blocks in dimension 1"), std::string::npos);
  small::launch(int64_t{1} << 32, 1, 32, 1);
  EXPECT_NE(error().find("a grid of 4294967296 blocks"), std::string::npos);
  small::launch(1, 1, 0, 1);
  EXPECT_NE(error().find("a block of 0 threads in dimension 0"), std::string::npos);
  small::launch(1, 1, 1025, 1);
  EXPECT_NE(error().find("a block of 1025 threads"), std::string::npos);
  small::launch(1, 1, 33, 32);
  EXPECT_NE(error().find("a block of 1056 threads"), std::string::npos);
}

TEST(EmulatedLaunch, CountsStaticSharedMemoryToo) {
  Buffer<int> out(1);
  constexpr size_t kMost = 48 * 1024 - 128;
  EXPECT_TRUE(small::take_shared(kMost, -1, out.data()));
  EXPECT_EQ(error(), "no error");
  EXPECT_EQ(out.values[0], 1);
  EXPECT_TRUE(small::take_shared(kMost + 4, -1, out.data()));
  EXPECT_NE(error().find("has 49156 bytes of shared memory, 128 of them static, where it may have 49152"),
            std::string::npos);
  EXPECT_TRUE(small::take_shared(49156, -1, out.data()));
  EXPECT_NE(error().find("launched with 49156 bytes of dynamic shared memory"), std::string::npos);
  EXPECT_TRUE(small::take_shared(kMost + 4, kMost + 4, out.data()));
  EXPECT_EQ(error(), "no error");
  EXPECT_TRUE(small::take_shared(kMost + 8, -1, out.data()));
  EXPECT_NE(error().find("where it may have 49028"), std::string::npos);
  EXPECT_FALSE(small::take_shared(0, 227 * 1024 + 1, out.data()));
  EXPECT_EQ(error(), "no error");
}

TEST(EmulatedLaunch, RunsNothingAfterAnErrorUntilItIsAskedFor) {
  Buffer<int> out(200, -1);
  small::half_a_barrier();
  small::count_up(200, out.data());
  EXPECT_EQ(out.values[0], -1);
  EXPECT_NE(error(), "no error");
  small::count_up(200, out.data());
  EXPECT_EQ(out.values[0], 0);
}

TEST(EmulatedLaunch, CanRunTheLastBlocksAlone) {
  Buffer<int> out(200, -1);
  emulated::faults.most_blocks = 1;
  small::count_up(200, out.data());
  emulated::faults = {};
  EXPECT_EQ(out.values[191], -1);
  EXPECT_EQ(out.values[192], 192);
}

}  // namespace
