// AdamW written as an expression, as a recipe's function is, and the same with one line changed, over the
// built-in kernel: steps alternate in one process. No expression is recognised and replaced.
//   bench_expression_step [MILLIONS_OF_PARAMETERS] [ROUNDS] [fp32|bf16]: dtype of the weights, with fp32
//   masters
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "bench/timing.h"
#include "trainer/device/device.h"
#include "trainer/expression/expression_json.h"
#include "trainer/kernels/expression/run_program.h"
#include "trainer/kernels/optimizer/adamw_step.h"
#include "trainer/sharding/arena.h"

namespace {

using namespace tycho;

/// Returns AdamW. With a changed line, an update whose sign is not the gradient's is left out, as in cautious
/// AdamW without its mean.
Program adamw(bool changed) {
  const std::string begin = R"({"inputs":[{"name":"p"},{"name":"g"},{"name":"m"},{"name":"v"},
    {"name":"grad_scale","shape":[1,1]},{"name":"lr","scalar":true},{"name":"beta1","scalar":true},
    {"name":"beta2","scalar":true},{"name":"eps","scalar":true},{"name":"decay","scalar":true},
    {"name":"correction1","scalar":true},{"name":"correction2","scalar":true}],
    "nodes":[["input",0],["input",1],["input",2],["input",3],["input",4],["input",5],["input",6],["input",7],
    ["input",8],["input",9],["input",10],["input",11],["number",1],["mul",1,4],["sub",12,6],["sub",12,7],
    ["mul",2,6],["mul",13,14],["add",16,17],["mul",3,7],["mul",13,13],["mul",20,15],["add",19,21],["sqrt",22],
    ["sqrt",11],["div",12,24],["mul",23,25],["add",26,8],["div",18,27],["sub",12,9],["mul",0,29],["div",5,10],
    ["mul",28,31],["sub",30,32])";
  const std::string plain = R"(],"outputs":[{"name":"p","node":33},)";
  const std::string cautious = R"(,["mul",18,13],["number",0],["gt",34,35],["where",36,33,30]],
    "outputs":[{"name":"p","node":37},)";
  const std::string end = R"({"name":"m","node":18},{"name":"v","node":22}]})";
  return Program(read_expression(parse_json(begin + (changed ? cautious : plain) + end, "bench")));
}

struct State {
  Tensor params, m, v;  // params: the masters of bf16 weights
};

Tensor buffer(int64_t numel) { return arena_view(make_arena(numel * 4, at::kCPU), 0, {numel}, at::kFloat); }

State state(int64_t numel) {
  return {buffer(numel).fill_(0.5), buffer(numel).fill_(1e-3), buffer(numel).fill_(1e-6)};
}

WeightTensors weights(const State& state, bool bf16) {
  if (!bf16) return {.params = state.params};
  const Tensor arena = make_arena(state.params.numel() * 2, at::kCPU);
  return {.params = arena_view(arena, 0, state.params.sizes(), at::kBFloat16), .master = state.params};
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t numel = (argc > 1 ? std::atoll(argv[1]) : 124) * 1000000;
  const int64_t rounds = argc > 2 ? std::atoll(argv[2]) : 15;
  const bool bf16 = argc > 3 && std::string_view(argv[3]) == "bf16";
  const c10::InferenceMode no_autograd;
  const int threads = set_threads(0);
  const Tensor scale_1 = at::ones({1});
  Tensor grads = buffer(numel).normal_(0, 1e-3);
  const AdamWScalars s = {1e-4, 0.9, 0.95, 1e-8, 1e-6, 0.5, 0.5};
  const std::vector<double> scalars = {
      s.lr, s.beta1, s.beta2, s.eps, s.decay, s.bias_correction1, s.bias_correction2};
  State own = state(numel), other = state(numel);
  const Program plain = adamw(false), changed = adamw(true);
  const WeightTensors own_weights = weights(own, bf16), other_weights = weights(other, bf16);
  const std::vector<ProgramTensor> arrays = {{{}, &other_weights}, {grads}, {other.m}, {other.v}, {scale_1}};

  std::vector<double> step_s, plain_ratio, changed_ratio;
  for (int64_t round = -2; round < rounds; ++round) {  // two to warm up
    const auto built_in = [&] {
      return seconds([&] { adamw_step(s, scale_1, own_weights, grads, own.m, own.v); });
    };
    // Each program stands between two steps of the built-in kernel.
    const double first_s = built_in();
    const double plain_s = seconds([&] { run_program(plain, scalars, arrays); });
    if (round == -2 && !(own.params.equal(other.params) && own_weights.params.equal(other_weights.params)))
      return std::puts("the expression has other bits"), 1;
    const double second_s = built_in();
    const double changed_s = seconds([&] { run_program(changed, scalars, arrays); });
    const double third_s = built_in();
    if (round < 0) continue;
    step_s.push_back(second_s);
    plain_ratio.push_back(2 * plain_s / (first_s + second_s));
    changed_ratio.push_back(2 * changed_s / (second_s + third_s));
  }
  fmt::print("AdamW, {} million parameters, {}, {} threads, kernels {}\n", numel / 1000000,
             bf16 ? "bf16" : "fp32", threads, cpu_kernels().name);
  fmt::print("built in             {:7.1f} ms\n", median(step_s) * 1e3);
  const auto print = [](const char* what, std::vector<double> ratios) {
    std::sort(ratios.begin(), ratios.end());
    fmt::print("{:<20} {:.3f} of it ({:.3f} to {:.3f})\n", what, median(ratios), ratios[ratios.size() / 4],
               ratios[ratios.size() * 3 / 4]);
  };
  print("expression", plain_ratio);
  print("one line changed", changed_ratio);
}
