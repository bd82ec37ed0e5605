// Activations written as functions of a recipe over the built-in kernels: forward and backward alternate in
// one process.
//   bench_activation_step [ROWS] [HIDDEN] [ROUNDS]
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "bench/timing.h"
#include "trainer/device/device.h"
#include "trainer/kernels/activation.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/kernels/expression/defined_activation.h"
#include "trainer/sharding/arena.h"

namespace {

using namespace tycho;

constexpr const char* kSilu = R"({"inputs":[{"name":"x"}],"nodes":[["input",0],["sigmoid",0],["mul",0,1]],
    "outputs":[{"name":"y","node":2}]})";
constexpr const char* kGeluTanh = R"({"inputs":[{"name":"x"}],"nodes":[["input",0],["number",0.044715],
    ["mul",0,0],["mul",2,0],["mul",1,3],["add",0,4],["number",0.7978845608028654],["mul",6,5],["tanh",7],
    ["number",1],["add",9,8],["number",0.5],["mul",11,0],["mul",12,10]],"outputs":[{"name":"y","node":13}]})";
// Tanh GELU as x sigmoid(2u), which is how the built-in kernel computes it.
constexpr const char* kGeluSigmoid = R"({"inputs":[{"name":"x"}],"nodes":[["input",0],["mul",0,0],
    ["number",0.07135481282738239],["mul",1,2],["number",1.5957691216057308],["add",3,4],["mul",0,5],
    ["sigmoid",6],["mul",0,7]],"outputs":[{"name":"y","node":8}]})";
constexpr const char* kGelu = R"({"inputs":[{"name":"x"}],"nodes":[["input",0],["number",0.7071067811865476],
    ["mul",0,1],["erf",2],["number",1],["add",4,3],["number",0.5],["mul",6,0],["mul",7,5]],
    "outputs":[{"name":"y","node":8}]})";

struct Case {
  const char* name;
  Activation builtin;
  const char* function;
  bool gated;
};

/// Returns random numbers in memory with huge pages, where training keeps activations.
Tensor random(int64_t rows, int64_t columns, at::ScalarType dtype) {
  const int64_t numel = rows * columns;
  const Tensor arena = make_arena(numel * 4, at::kCPU);
  return arena_view(arena, 0, {rows, columns}, dtype).copy_(at::randn({rows, columns}));
}

/// Prints the time of the built-in kernel, and the ratio of the function's to it.
void measure(const Case& c, at::ScalarType dtype, int64_t rows, int64_t hidden, int64_t rounds) {
  const DefinedActivation defined(parse_json(c.function, "bench"), c.gated);
  const int64_t columns = (c.gated ? 2 : 1) * hidden;
  const Tensor x = random(rows, columns, dtype), dy = random(rows, hidden, dtype);
  Tensor y = random(rows, hidden, dtype), dx = random(rows, columns, dtype),
         mine = random(rows, columns, dtype);
  const auto built_in = [&] {
    return seconds([&] {
      if (c.gated) {
        gated_activation(c.builtin, x, y);
        gated_activation_backward(c.builtin, x, dy, dx, y);
      } else {
        activation(c.builtin, x, y);
        activation_backward(c.builtin, x, dy, dx, y);
      }
    });
  };
  std::vector<double> step_s, ratio;
  for (int64_t round = -2; round < rounds; ++round) {  // two to warm up
    mine.copy_(x);                                     // backward replaces it
    const double before_s = built_in();
    const double mine_s = seconds([&] {
      defined.forward(mine, y);
      defined.backward(mine, dy, y);
    });
    const double after_s = built_in();
    if (round < 0) continue;
    step_s.push_back(before_s);
    ratio.push_back(2 * mine_s / (before_s + after_s));
  }
  std::sort(ratio.begin(), ratio.end());
  fmt::print("{:<20} {}  built in {:6.2f} ms, function {:.3f} of it ({:.3f} to {:.3f})\n", c.name,
             dtype == at::kFloat ? "fp32" : "bf16", median(step_s) * 1e3, median(ratio),
             ratio[ratio.size() / 4], ratio[ratio.size() * 3 / 4]);
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t rows = argc > 1 ? std::atoll(argv[1]) : 2048, hidden = argc > 2 ? std::atoll(argv[2]) : 3072,
                rounds = argc > 3 ? std::atoll(argv[3]) : 15;
  const c10::InferenceMode no_autograd;
  fmt::print("{} x {}, {} threads, kernels {}\n", rows, hidden, set_threads(0), cpu_kernels().name);
  for (const Case& c :
       {Case{"SiLU", Activation::kSilu, kSilu, false}, Case{"SiLU, gated", Activation::kSilu, kSilu, true},
        Case{"GELU-tanh", Activation::kGeluTanh, kGeluTanh, false},
        Case{"GELU-tanh, gated", Activation::kGeluTanh, kGeluTanh, true},
        Case{"GELU-sigmoid", Activation::kGeluTanh, kGeluSigmoid, false},
        Case{"GELU-sigmoid, gated", Activation::kGeluTanh, kGeluSigmoid, true},
        Case{"GELU", Activation::kGelu, kGelu, false}, Case{"GELU, gated", Activation::kGelu, kGelu, true}})
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) measure(c, dtype, rows, hidden, rounds);
}
