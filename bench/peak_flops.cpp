// What a loop of nothing but multiply-add instructions reaches on this CPU.
#include "bench/peak_flops.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tycho {
namespace {

constexpr int64_t kLoops = 2'000'000;

#if defined(__x86_64__)
// Twelve sums, more than any CPU's latency times its units; each is added to once in a loop.
#define TYCHO_TWELVE(instruction, r)                                                                  \
  instruction " %%" r "12, %%" r "12, %%" r "0\n" instruction " %%" r "12, %%" r "12, %%" r           \
              "1\n" instruction " %%" r "12, %%" r "12, %%" r "2\n" instruction " %%" r "12, %%" r    \
              "12, %%" r "3\n" instruction " %%" r "12, %%" r "12, %%" r "4\n" instruction " %%" r    \
              "12, %%" r "12, %%" r "5\n" instruction " %%" r "12, %%" r "12, %%" r "6\n" instruction \
              " %%" r "12, %%" r "12, %%" r "7\n" instruction " %%" r "12, %%" r "12, %%" r           \
              "8\n" instruction " %%" r "12, %%" r "12, %%" r "9\n" instruction " %%" r "12, %%" r    \
              "12, %%" r "10\n" instruction " %%" r "12, %%" r "12, %%" r "11\n"
#define TYCHO_LOOP(instruction, r)                                                                     \
  int64_t left = kLoops;                                                                               \
  asm volatile("vzeroall\n 1:\n" TYCHO_TWELVE(instruction, r) "dec %0\n jnz 1b\n vzeroupper\n"         \
               : "+r"(left)                                                                            \
               :                                                                                       \
               : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
                 "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")

void loop_of_fma_256() { TYCHO_LOOP("vfmadd231ps", "ymm"); }
void loop_of_fma_512() { TYCHO_LOOP("vfmadd231ps", "zmm"); }
void loop_of_dots() { TYCHO_LOOP("vdpbf16ps", "zmm"); }

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
  if (bf16 && table == "cpu avx512_bf16") return {"vdpbf16ps zmm", loop_of_dots, kLoops * 12 * 32 * 2};
  if (table.starts_with("cpu avx512") || table == "cpu amx_bf16")
    return {"vfmadd231ps zmm", loop_of_fma_512, kLoops * 12 * 16 * 2};
  if (table == "cpu avx2") return {"vfmadd231ps ymm", loop_of_fma_256, kLoops * 12 * 8 * 2};
#endif
  return {};
}

}  // namespace

PeakFlops peak_flops(std::string_view table, bool bf16, int num_threads) {
  const Loop loop = loop_for(table, bf16);
  if (!loop.run) return {"", 0};
  double best_s = 1e30;
  for (int round = 0; round < 10; ++round) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (int i = 0; i < num_threads; ++i) threads.emplace_back(loop.run);
    for (std::thread& thread : threads) thread.join();
    best_s =
        std::min(best_s, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return {loop.instruction, static_cast<double>(loop.flops) * num_threads / best_s};
}

}  // namespace tycho
