// Tycho's CPU product against ATen's, alternating in one process, for the shapes of a model's step, and both
// against a loop of the table's multiply-add instruction (target: 0.9 of it). Both write the inputs' type.
// Exits with 1 if a product is faster than the loop: then one of the two is measured wrongly.
//   bench_matmul [--bf16] [TOKENS [WIDTH [FFN [VOCAB]]]]
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "bench/peak_flops.h"
#include "bench/timing.h"
#include "trainer/kernels/dispatch.h"

namespace {

using namespace tycho;

/// Times result [rows, columns] = left · rightᵀ, each laid out as it is or transposed. Returns the larger
/// share of the loop's rate, `peak`; 0 where that is unknown.
double compare(const char* name, int64_t rows, int64_t columns, int64_t depth, bool left_t, bool right_t,
               at::ScalarType type, double peak) {
  const Dtype dtype = type == at::kFloat ? Dtype::kFp32 : Dtype::kBf16;
  const Tensor left = left_t ? at::randn({depth, rows}).to(type) : at::randn({rows, depth}).to(type);
  const Tensor right = right_t ? at::randn({depth, columns}).to(type) : at::randn({columns, depth}).to(type);
  const at::ScalarType result = left_t ? at::kFloat : type;
  Tensor ours = at::empty({rows, columns}, result), theirs = at::empty({rows, columns}, type),
         copy = at::empty({rows, columns}, result);
  const auto operand = [&](const Tensor& x, bool transposed) {
    return MatmulOperand{x.const_data_ptr(), dtype, transposed ? 1 : x.size(1), transposed ? x.size(1) : 1};
  };
  std::vector<double> own_s, aten_s;
  for (int i = -1; i < 10; ++i) {
    own_s.push_back(seconds([&] {
      cpu_kernels().matmul(
          {rows, columns, depth}, operand(left, left_t), operand(right, right_t),
          {ours.mutable_data_ptr(), result == at::kFloat ? Dtype::kFp32 : Dtype::kBf16, nullptr}, nullptr);
    }));
    aten_s.push_back(seconds([&] {
      at::mm_out(theirs, left_t ? left.t() : left, right_t ? right : right.t());
      if (result != type) copy.copy_(theirs);
    }));
    if (i < 0) own_s.clear(), aten_s.clear();
  }
  const double flops = 2.0 * static_cast<double>(rows * columns * depth) / 1e9;
  const double own = flops / best(own_s), aten = flops / best(aten_s);
  fmt::print("{:<18}{:>6} x {:>6} x {:>6}: {:>6.1f} GFLOP/s, ATen {:>6.1f}, ratio {:.2f}", name, rows,
             columns, depth, own, aten, own / aten);
  const bool bounds_aten = std::getenv("TYCHO_CPU") == nullptr;
  if (peak > 0) fmt::print(", of the loop {:.2f}", own / peak);
  if (peak > 0 && bounds_aten) fmt::print(", ATen {:.2f}", aten / peak);
  fmt::print("\n");
  return peak > 0 ? std::max(own, bounds_aten ? aten : 0.0) / peak : 0.0;
}

/// Starts the program again with OpenMP threads that sleep when they wait: ATen's would spin on a core while
/// ours compute. libgomp reads that before main begins.
void let_threads_sleep(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/1);
  execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  let_threads_sleep(argv);
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
  struct Shape {
    const char* name;
    int64_t rows, columns, depth;
    bool left_t, right_t;
  };
  const Shape shapes[] = {{"up, forward", tokens, ffn, width, false, false},
                          {"up, dx", tokens, width, ffn, false, true},
                          {"up, dw", ffn, width, tokens, true, true},
                          {"down, forward", tokens, width, ffn, false, false},
                          {"down, dx", tokens, ffn, width, false, true},
                          {"down, dw", width, ffn, tokens, true, true},
                          {"head, forward", tokens, vocab, width, false, false},
                          {"head, dx", tokens, width, vocab, false, true},
                          {"head, dw", vocab, width, tokens, true, true},
                          {"one token", 1, ffn, width, false, false},
                          {"one token, head", 1, vocab, width, false, false},
                          {"8 tokens, up", 8, ffn, width, false, false},
                          {"8 tokens, down", 8, width, ffn, false, false},
                          {"8 tokens, head", 8, vocab, width, false, false}};
  double most = 0;
  for (const Shape& s : shapes)
    most = std::max(most, compare(s.name, s.rows, s.columns, s.depth, s.left_t, s.right_t, type, peak));
  if (most <= 1) return 0;
  fmt::print(stderr,
             "bench_matmul: expected products below the loop's rate, got {:.2f} of it: measure again on a "
             "quiet machine\n",
             most);
  return 1;
}
