// AVX-512, its bf16 instructions and AMX in portable C, so that the kernels written for them run, compiled a
// second time, on processors without them. Included before a kernel's source: it takes the place of what
// immintrin.h declares, and says of this compilation what the compiler says with -march=x86-64-v4.
//
// Semantics: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.
#pragma once
#include <immintrin.h>

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define TYCHO_EMULATED 1
#define __AVX512F__ 1
#define __AVX512BF16__ 1

#define TYCHO_EMULATION static inline __attribute__((always_inline))

namespace tycho_emulation {

using U16x16 = uint16_t __attribute__((vector_size(32)));
using U32x16 = uint32_t __attribute__((vector_size(64)));
using U64x8 = uint64_t __attribute__((vector_size(64)));

TYCHO_EMULATION __m512i cvtepu16_epi32(__mmask16 mask, __m256i x) {
  U32x16 wide = __builtin_convertvector((U16x16)x, U32x16);
  for (int i = 0; i < 16; ++i)
    if (!(mask >> i & 1)) wide[i] = 0;
  return (__m512i)wide;
}

TYCHO_EMULATION __m256i cvtepi32_epi16(__mmask16 mask, __m512i x) {
  U16x16 low = __builtin_convertvector((U32x16)x, U16x16);
  for (int i = 0; i < 16; ++i)
    if (!(mask >> i & 1)) low[i] = 0;
  return (__m256i)low;
}

// The second operand where either is NaN.
TYCHO_EMULATION __m512 max_ps(__mmask16 mask, __m512 a, __m512 b) {
  __m512 most = a > b ? a : b;
  for (int i = 0; i < 16; ++i)
    if (!(mask >> i & 1)) most[i] = 0;
  return most;
}

TYCHO_EMULATION __m512 fmadd_ps(__m512 a, __m512 b, __m512 c) {
  for (int i = 0; i < 16; ++i) a[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return a;
}

TYCHO_EMULATION __m512 min_ps(__mmask16 mask, __m512 a, __m512 b) {
  __m512 least = a < b ? a : b;
  for (int i = 0; i < 16; ++i)
    if (!(mask >> i & 1)) least[i] = 0;
  return least;
}

// a 2^floor(b), rounded once.
TYCHO_EMULATION __m512 scalef_ps(__mmask16 mask, __m512 a, __m512 b) {
  __m512 scaled = {};
  for (int i = 0; i < 16; ++i) {
    if (!(mask >> i & 1)) continue;
    const bool is_number = a[i] == a[i] && b[i] == b[i];
    scaled[i] = is_number ? std::ldexp(a[i], static_cast<int>(std::floor(b[i]))) : a[i] + b[i];
  }
  return scaled;
}

TYCHO_EMULATION __m512d sqrt_pd(__mmask8 mask, __m512d x) {
  __m512d root = {};
  for (int i = 0; i < 8; ++i)
    if (mask >> i & 1) root[i] = __builtin_sqrt(x[i]);
  return root;
}

TYCHO_EMULATION __m512i mul_epu32(__mmask8 mask, __m512i a, __m512i b) {
  U64x8 product = ((U64x8)a & 0xffffffffu) * ((U64x8)b & 0xffffffffu);
  for (int i = 0; i < 8; ++i)
    if (!(mask >> i & 1)) product[i] = 0;
  return (__m512i)product;
}

// The instructions for bf16 take denormal numbers for zero, and leave none.
TYCHO_EMULATION float without_denormals(float x) {
  return std::fabs(x) < FLT_MIN ? std::copysign(0.0f, x) : x;
}

TYCHO_EMULATION float bf16_at(const void* from, int index) {
  uint16_t half;
  std::memcpy(&half, static_cast<const char*>(from) + 2 * index, sizeof half);
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return without_denormals(x);
}

TYCHO_EMULATION float fma_bf16(float a, float b, float sum) {
  return without_denormals(__builtin_fmaf(a, b, without_denormals(sum)));
}

// VDPBF16PS: the odd elements of each pair first, then the even ones.
static inline __m512 dpbf16_ps(__m512 sum, __m512bh a, __m512bh b) {
  for (int i = 0; i < 16; ++i) {
    const float odd = fma_bf16(bf16_at(&a, 2 * i + 1), bf16_at(&b, 2 * i + 1), sum[i]);
    sum[i] = fma_bf16(bf16_at(&a, 2 * i), bf16_at(&b, 2 * i), odd);
  }
  return sum;
}

[[noreturn]] static inline void stop(const char* why) {
  std::fprintf(stderr, "[emulated AMX] %s\n", why);
  std::abort();
}

struct TileRegisters {
  struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } config;
  alignas(64) char tile[8][16][64];
};
static_assert(sizeof(TileRegisters::config) == 64);

static inline TileRegisters& registers() {
  static thread_local TileRegisters registers;
  return registers;
}

static inline TileRegisters& configured() {
  if (registers().config.palette != 1) stop("tile registers are used before they are configured");
  return registers();
}

static inline void tile_loadconfig(const void* config) {
  TileRegisters& all = registers();
  std::memset(&all, 0, sizeof all);
  std::memcpy(&all.config, config, sizeof all.config);
  if (all.config.palette != 1 || all.config.start_row != 0) stop("expected palette 1 from row 0 on");
  for (const uint8_t zero : all.config.reserved)
    if (zero != 0) stop("reserved bytes of a configuration are set");
  for (int i = 0; i < 16; ++i) {
    const bool exists = i < 8, used = all.config.rows[i] != 0 && all.config.row_bytes[i] != 0;
    if (all.config.rows[i] > (exists ? 16 : 0) || all.config.row_bytes[i] > (exists ? 64 : 0) ||
        (!used && (all.config.rows[i] != 0 || all.config.row_bytes[i] != 0)))
      stop("a tile is larger than a register, or half configured");
  }
}

static inline void tile_release() { std::memset(&registers(), 0, sizeof registers()); }

static inline void tile_zero(int to) { std::memset(configured().tile[to], 0, sizeof registers().tile[to]); }

static inline void tile_loadd(int to, const void* from, int64_t stride) {
  TileRegisters& all = configured();
  tile_zero(to);
  for (int row = 0; row < all.config.rows[to]; ++row)
    std::memcpy(all.tile[to][row], static_cast<const char*>(from) + row * stride, all.config.row_bytes[to]);
}

static inline void tile_stored(int from, void* to, int64_t stride) {
  TileRegisters& all = configured();
  for (int row = 0; row < all.config.rows[from]; ++row)
    std::memcpy(static_cast<char*>(to) + row * stride, all.tile[from][row], all.config.row_bytes[from]);
}

// TDPBF16PS: the even and the odd elements are summed apart, and then added to what was there.
static inline void tile_dpbf16ps(int sums, int a, int b) {
  TileRegisters& all = configured();
  if (all.config.rows[a] != all.config.rows[sums] || all.config.row_bytes[b] != all.config.row_bytes[sums] ||
      all.config.row_bytes[a] != 4 * all.config.rows[b])
    stop("the tiles of a product do not fit each other");
  for (int row = 0; row < all.config.rows[sums]; ++row)
    for (int column = 0; column < all.config.row_bytes[sums] / 4; ++column) {
      float even = 0, odd = 0, sum;
      for (int k = 0; k < all.config.rows[b]; ++k) {
        even = fma_bf16(bf16_at(all.tile[a][row], 2 * k), bf16_at(all.tile[b][k], 2 * column), even);
        odd = fma_bf16(bf16_at(all.tile[a][row], 2 * k + 1), bf16_at(all.tile[b][k], 2 * column + 1), odd);
      }
      std::memcpy(&sum, all.tile[sums][row] + 4 * column, sizeof sum);
      sum = without_denormals(without_denormals(sum) + without_denormals(even + odd));
      std::memcpy(all.tile[sums][row] + 4 * column, &sum, sizeof sum);
    }
}

}  // namespace tycho_emulation

#define _mm512_maskz_cvtepu16_epi32 tycho_emulation::cvtepu16_epi32
#define _mm512_maskz_cvtepi32_epi16 tycho_emulation::cvtepi32_epi16
#define _mm512_maskz_max_ps tycho_emulation::max_ps
#define _mm512_maskz_scalef_ps tycho_emulation::scalef_ps
#define _mm512_maskz_min_ps tycho_emulation::min_ps
#define _mm512_fmadd_ps tycho_emulation::fmadd_ps
#define _mm512_maskz_sqrt_pd tycho_emulation::sqrt_pd
#define _mm512_maskz_mul_epu32 tycho_emulation::mul_epu32
#define _mm512_dpbf16_ps tycho_emulation::dpbf16_ps
#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig tycho_emulation::tile_loadconfig
#define _tile_release tycho_emulation::tile_release
#define _tile_zero tycho_emulation::tile_zero
#define _tile_loadd tycho_emulation::tile_loadd
#define _tile_stored tycho_emulation::tile_stored
#define _tile_dpbf16ps tycho_emulation::tile_dpbf16ps
