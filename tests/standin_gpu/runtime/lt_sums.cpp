// A product by its definition, in the order that a compiler makes fast.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/standin_gpu/runtime/cublas_lt.h"

namespace standin {
namespace {

float element(const LtMatrix& x, int64_t i, int64_t j) {
  const int64_t at = i * x.row_step + j * x.column_step;
  if (!x.bf16) return static_cast<const float*>(x.data)[at];
  const uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t*>(x.data)[at]) << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// bf16 is rounded to nearest even.
void put(const LtMatrix& x, int64_t i, int64_t j, float value) {
  const int64_t at = i * x.row_step + j * x.column_step;
  void* const data = const_cast<void*>(x.data);
  if (!x.bf16) {
    static_cast<float*>(data)[at] = value;
    return;
  }
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  const bool is_nan = value != value;
  bits = is_nan ? bits | 0x400000u : bits + 0x7fffu + ((bits >> 16) & 1);
  static_cast<uint16_t*>(data)[at] = static_cast<uint16_t>(bits >> 16);
}

// Without FMA: the same bits with both.
#ifdef __x86_64__
#define STANDIN_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define STANDIN_CLONES
#endif

/// sums [m] += rows [k, m] weighted by b [k], one k after the other; eight at a time leave sums in registers.
STANDIN_CLONES void add_rows(float* sums, const float* rows, const float* b, int64_t m, int64_t k) {
  int64_t at = 0;
  for (; at + 8 <= k; at += 8, rows += 8 * m) {
    for (int64_t i = 0; i < m; ++i) {
      float sum = sums[i];
      for (int64_t one = 0; one < 8; ++one) sum += rows[one * m + i] * b[at + one];
      sums[i] = sum;
    }
  }
  for (; at < k; ++at, rows += m)
    for (int64_t i = 0; i < m; ++i) sums[i] += rows[i] * b[at];
}

constexpr float kGelu = 0.7978845608f, kCubic = 0.044715f;  // sqrt(2 / pi)

/// Returns gelu_tanh(x) / x.
float gelu_gate(float x) { return 0.5f * (1 + std::tanh(kGelu * (x + kCubic * x * x * x))); }
float gelu_slope(float x) {
  const float tanh = std::tanh(kGelu * (x + kCubic * x * x * x));
  return 0.5f * (1 + tanh) + 0.5f * x * (1 - tanh * tanh) * kGelu * (1 + 3 * kCubic * x * x);
}

}  // namespace

void multiply(const LtProduct& p) {
  // Rows of a for one k lie together, so that the inner loop runs along them.
  std::vector<float> a(static_cast<size_t>(p.m * p.k)), b(static_cast<size_t>(p.k)),
      sums(static_cast<size_t>(p.m)), of_part(static_cast<size_t>(p.m));
  for (int64_t k = 0; k < p.k; ++k)
    for (int64_t i = 0; i < p.m; ++i) a[static_cast<size_t>(k * p.m + i)] = element(p.a, i, k);
  for (int64_t j = 0; j < p.n; ++j) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (int64_t k = 0; k < p.k; ++k) b[static_cast<size_t>(k)] = element(p.b, k, j);
    for (int64_t part = 0; part < p.parts; ++part) {
      const int64_t first = part * p.k / p.parts, behind = (part + 1) * p.k / p.parts;
      std::fill(of_part.begin(), of_part.end(), 0.0f);
      add_rows(of_part.data(), a.data() + first * p.m, b.data() + first, p.m, behind - first);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += of_part[i];
    }
    for (int64_t i = 0; i < p.m; ++i) {
      float sum = sums[static_cast<size_t>(i)];
      if (p.c.data != nullptr) sum += element(p.c, i, j);
      if (p.bias.data != nullptr) sum += element(p.bias, i, 0);
      if (p.gelu.data != nullptr && p.is_gelu_gradient) {
        sum *= gelu_slope(element(p.gelu, i, j));
      } else if (p.gelu.data != nullptr) {
        put(p.gelu, i, j, sum);
        sum *= gelu_gate(sum);
      }
      put(p.d, i, j, sum);
    }
  }
  for (int64_t i = 0; p.sums_of_a.data != nullptr && i < p.m; ++i) {
    float sum = 0;
    for (int64_t k = 0; k < p.k; ++k) sum += element(p.a, i, k);
    put(p.sums_of_a, i, 0, sum);
  }
  for (int64_t j = 0; p.sums_of_b.data != nullptr && j < p.n; ++j) {
    float sum = 0;
    for (int64_t k = 0; k < p.k; ++k) sum += element(p.b, k, j);
    put(p.sums_of_b, j, 0, sum);
  }
}

}  // namespace standin
