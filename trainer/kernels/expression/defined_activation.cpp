// The halves of a gated matrix are arrays with a step between rows.
#include "trainer/kernels/expression/defined_activation.h"

#include <vector>

#include "trainer/expression/activation_expression.h"
#include "trainer/kernels/expression/run_program.h"

namespace tycho {

DefinedActivation::DefinedActivation(const Json& function, bool gated)
    : gated_(gated),
      forward_(activation_forward(function, gated)),
      backward_(activation_backward(function, gated)) {}

void DefinedActivation::run(const Program& program, const Tensor& x, const Tensor& dy,
                            const Tensor& y) const {
  const int64_t width = y.size(-1);
  std::vector<ProgramTensor> arrays;
  for (const ProgramArray& array : program.arrays()) {
    if (array.name == kActivationInput) arrays.push_back({gated_ ? x.narrow(-1, 0, width) : x});
    if (array.name == kActivationUp) arrays.push_back({x.narrow(-1, width, width)});
    if (array.name == kActivationGradient) arrays.push_back({dy});
    if (array.name == kActivationOutput) arrays.push_back({y});
  }
  run_program(program, {}, arrays);
}

void DefinedActivation::forward(const Tensor& x, Tensor& y) const { run(forward_, x, {}, y); }

void DefinedActivation::backward(Tensor& x, const Tensor& dy, Tensor& y) const { run(backward_, x, dy, y); }

}  // namespace tycho
