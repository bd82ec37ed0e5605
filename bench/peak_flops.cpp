// The rates that bound a step on this CPU.
#include "bench/peak_flops.h"

#include <ATen/ops/ones.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "bench/timing.h"

namespace tycho {
namespace {

constexpr int64_t kLoops = 200'000;  // some milliseconds
constexpr double kRound_s = 0.1;     // shorter rounds measure how threads start

#if defined(__x86_64__)
#define TYCHO_SUM(instruction, r, factor, sum) instruction " %%" r factor ", %%" r factor ", %%" r sum "\n"
#define TYCHO_FOUR(instruction, r, factor, a, b, c, d) \
  TYCHO_SUM(instruction, r, factor, a)                 \
  TYCHO_SUM(instruction, r, factor, b)                 \
  TYCHO_SUM(instruction, r, factor, c) TYCHO_SUM(instruction, r, factor, d)
#define TYCHO_TWELVE(instruction, r, factor)             \
  TYCHO_FOUR(instruction, r, factor, "0", "1", "2", "3") \
  TYCHO_FOUR(instruction, r, factor, "4", "5", "6", "7") \
  TYCHO_FOUR(instruction, r, factor, "8", "9", "10", "11")
// AVX-512 has registers for 24 sums; AVX2 has 16 registers. Either is more than latency times units.
#define TYCHO_TWENTY_FOUR(instruction, r)                  \
  TYCHO_TWELVE(instruction, r, "31")                       \
  TYCHO_FOUR(instruction, r, "31", "12", "13", "14", "15") \
  TYCHO_FOUR(instruction, r, "31", "16", "17", "18", "19") \
  TYCHO_FOUR(instruction, r, "31", "20", "21", "22", "23")
#define TYCHO_LOOP(before, sums, ...)                                                                  \
  int64_t left = kLoops;                                                                               \
  asm volatile("vzeroall\n" before " 1:\n" sums "dec %0\n jnz 1b\n vzeroupper\n"                       \
               : "+r"(left)                                                                            \
               :                                                                                       \
               : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
                 "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15" __VA_OPT__(, ) __VA_ARGS__)
#define TYCHO_UPPER_REGISTERS "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm31"

void loop_of_fma_256() { TYCHO_LOOP("", TYCHO_TWELVE("vfmadd231ps", "ymm", "12")); }
// vzeroall leaves registers 16 to 31 as they are.
#define TYCHO_ZERO_FACTOR "vpxord %%zmm31, %%zmm31, %%zmm31\n"
__attribute__((target("avx512f"))) void loop_of_fma_512() {
  TYCHO_LOOP(TYCHO_ZERO_FACTOR, TYCHO_TWENTY_FOUR("vfmadd231ps", "zmm"), TYCHO_UPPER_REGISTERS);
}
__attribute__((target("avx512f,avx512bf16"))) void loop_of_dots() {
  TYCHO_LOOP(TYCHO_ZERO_FACTOR, TYCHO_TWENTY_FOUR("vdpbf16ps", "zmm"), TYCHO_UPPER_REGISTERS);
}

// Four tiles of sums, as the kernel has them.
__attribute__((target("amx-tile,amx-bf16"))) void loop_of_tiles() {
  struct {
    uint8_t palette, reserved[15];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } config = {};
  config.palette = 1;
  for (int i = 0; i < 8; ++i) config.row_bytes[i] = 64, config.rows[i] = 16;
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
  for (int64_t i = 0; i < kLoops / 16; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}
#endif

struct Loop {
  const char* instruction = "";
  void (*run)() = nullptr;
  int64_t flops = 0;
};

Loop loop_for([[maybe_unused]] std::string_view table, [[maybe_unused]] bool bf16) {
#if defined(__x86_64__)
  if (bf16 && table == "cpu amx_bf16")
    return {"tdpbf16ps", loop_of_tiles, kLoops / 16 * 4 * 16 * 16 * 32 * 2};
  if (bf16 && table == "cpu avx512_bf16") return {"vdpbf16ps zmm", loop_of_dots, kLoops * 24 * 32 * 2};
  if (table.starts_with("cpu avx512") || table == "cpu amx_bf16")
    return {"vfmadd231ps zmm", loop_of_fma_512, kLoops * 24 * 16 * 2};
  if (table == "cpu avx2") return {"vfmadd231ps ymm", loop_of_fma_256, kLoops * 12 * 8 * 2};
#endif
  return {};
}

/// Runs the loop on each of the first CPUs that this process may use. Returns the sum of the threads' rates.
double round_of(const Loop& loop, const std::vector<int>& cpus) {
  std::atomic<size_t> waiting = cpus.size();
  std::vector<double> rates(cpus.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < cpus.size(); ++i)
    threads.emplace_back([&, i] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpus[i], &one);
      pthread_setaffinity_np(pthread_self(), sizeof one, &one);
      for (--waiting; waiting > 0;) std::this_thread::yield();
      int64_t runs = 0;
      double passed_s = 0;
      for (const auto start = std::chrono::steady_clock::now(); passed_s < kRound_s; ++runs) {
        loop.run();
        passed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      }
      rates[i] = static_cast<double>(loop.flops * runs) / passed_s;
    });
  double sum = 0;
  for (size_t i = 0; i < threads.size(); ++i) threads[i].join(), sum += rates[i];
  return sum;
}

std::vector<int> usable_cpus(int count) {
  cpu_set_t all;
  CPU_ZERO(&all);
  sched_getaffinity(0, sizeof all, &all);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE && cpus.size() < static_cast<size_t>(count); ++cpu)
    if (CPU_ISSET(cpu, &all)) cpus.push_back(cpu);
  return cpus;
}

}  // namespace

PeakFlops peak_flops(std::string_view table, bool bf16, int num_threads) {
  const Loop loop = loop_for(table, bf16);
  if (!loop.run) return {"", 0};
  const std::vector<int> cpus = usable_cpus(num_threads);
  double best = 0;
  for (int round = 0; round < 10; ++round) best = std::max(best, round_of(loop, cpus));
  return {loop.instruction, best};
}

double streaming_rate() {
  constexpr int64_t kBytes = 256 << 20;
  const at::Tensor from = at::ones({kBytes / 4}), to = at::ones({kBytes / 4});
  std::vector<double> rates;
  for (int round = 0; round < 9; ++round) rates.push_back(2.0 * kBytes / seconds([&] { to.copy_(from); }));
  return median(rates);
}

double reading_rate(int num_threads) {
  constexpr size_t kNumbers = size_t{256 << 20} / sizeof(uint64_t);
  const std::vector<uint64_t> memory(kNumbers, 1);
  const size_t part = kNumbers / static_cast<size_t>(num_threads);
  std::atomic<uint64_t> all = 0;
  double best = 0;
  for (int round = 0; round < 9; ++round) {
    const double took = seconds([&] {
      std::vector<std::thread> threads;
      for (size_t i = 0; i < static_cast<size_t>(num_threads); ++i)
        threads.emplace_back([&, from = memory.data() + i * part] {
          std::array<uint64_t, 4> sums = {};  // so that additions do not wait for each other
          for (size_t at = 0; at + sums.size() <= part; at += sums.size())
            for (size_t k = 0; k < sums.size(); ++k) sums[k] += from[at + k];
          all += sums[0] + sums[1] + sums[2] + sums[3];
        });
      for (std::thread& thread : threads) thread.join();
    });
    best = std::max(best, static_cast<double>(kNumbers * sizeof(uint64_t)) / took);
  }
  return all == 0 ? 0 : best;
}

}  // namespace tycho
