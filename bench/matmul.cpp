// Tycho's CPU product against ATen's, alternating in one process, for the shapes of a model's step, and both
// against a loop of the table's multiply-add instruction (target: 0.8 of it).
//   bench_matmul [--bf16] [TOKENS [WIDTH [FFN [VOCAB]]]]
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "bench/peak_flops.h"
#include "trainer/kernels/dispatch.h"

namespace {

using namespace tycho;

template <class Work>
double best_seconds(int rounds, Work&& work) {
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

/// result [rows, columns] = left · rightᵀ, each laid out as it is or transposed.
void compare(const char* name, int64_t rows, int64_t columns, int64_t depth, bool left_t, bool right_t,
             at::ScalarType type, double peak) {
  const Dtype dtype = type == at::kFloat ? Dtype::kFp32 : Dtype::kBf16;
  const Tensor left = left_t ? at::randn({depth, rows}).to(type) : at::randn({rows, depth}).to(type);
  const Tensor right = right_t ? at::randn({depth, columns}).to(type) : at::randn({columns, depth}).to(type);
  Tensor ours = at::empty({rows, columns}), theirs = at::empty({rows, columns}, type);
  const auto operand = [&](const Tensor& x, bool transposed) {
    return MatmulOperand{x.const_data_ptr(), dtype, transposed ? 1 : x.size(1), transposed ? x.size(1) : 1};
  };
  double own_s = 1e30, aten_s = 1e30;
  for (int i = 0; i < 5; ++i) {
    own_s = std::min(own_s, best_seconds(2, [&] {
                       cpu_kernels().matmul({rows, columns, depth}, operand(left, left_t),
                                            operand(right, right_t),
                                            {ours.mutable_data_ptr(), Dtype::kFp32, nullptr}, nullptr);
                     }));
    aten_s = std::min(aten_s, best_seconds(2, [&] {
                        at::mm_out(theirs, left_t ? left.t() : left, right_t ? right : right.t());
                      }));
  }
  const double flops = 2.0 * static_cast<double>(rows * columns * depth) / 1e9;
  const double own = flops / own_s, aten = flops / aten_s;
  fmt::print("{:<18}{:>6} x {:>6} x {:>6}: {:>6.1f} GFLOP/s, ATen {:>6.1f}, ratio {:.2f}", name, rows,
             columns, depth, own, aten, own / aten);
  if (peak > 0) fmt::print(", of the loop {:.2f}, ATen {:.2f}", own / peak, aten / peak);
  fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) {
  at::ScalarType type = at::kFloat;
  std::vector<int64_t> sizes = {256, 768, 3072, 50304};
  size_t given = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--bf16") == 0)
      type = at::kBFloat16;
    else if (given < sizes.size())
      sizes[given++] = std::atoll(argv[i]);
  }
  const int64_t tokens = sizes[0], width = sizes[1], ffn = sizes[2], vocab = sizes[3];
  fmt::print("{} threads, {}, table {}\n", at::get_num_threads(), type == at::kFloat ? "fp32" : "bf16",
             cpu_kernels().name);
  const PeakFlops loop = peak_flops(cpu_kernels().name, type == at::kBFloat16, at::get_num_threads());
  const double peak = loop.per_second / 1e9;
  if (peak > 0) fmt::print("a loop of {}: {:.1f} GFLOP/s\n", loop.instruction, peak);
  compare("up, forward", tokens, ffn, width, false, false, type, peak);
  compare("up, dx", tokens, width, ffn, false, true, type, peak);
  compare("up, dw", ffn, width, tokens, true, true, type, peak);
  compare("down, forward", tokens, width, ffn, false, false, type, peak);
  compare("down, dx", tokens, ffn, width, false, true, type, peak);
  compare("down, dw", width, ffn, tokens, true, true, type, peak);
  compare("head, forward", tokens, vocab, width, false, false, type, peak);
  compare("head, dx", tokens, width, vocab, false, true, type, peak);
  compare("head, dw", vocab, width, tokens, true, true, type, peak);
  compare("one token", 1, ffn, width, false, false, type, peak);
  compare("one token, head", 1, vocab, width, false, false, type, peak);
}
