// Every pair of neighbouring operations that a kernel may do in one step, as outputs of an expression.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "trainer/expression/expression.h"

namespace tycho {

/// Returns an expression with an output for each way in which two neighbouring operations may be one step:
/// the first has a result in registers, elements of x and y or the number k, the second z or k in addition.
inline Expression neighbours() {
  Expression e;
  for (const char* name : {"x", "y", "z", "k"}) {
    e.inputs.push_back({.name = name, .scalar = *name == 'k'});
    e.nodes.push_back({.op = Op::kInput, .input = static_cast<int32_t>(e.inputs.size()) - 1});
  }
  constexpr int32_t kX = 0, kY = 1, kZ = 2, kK = 3, kRegister = -1;
  const auto add = [&](Op op, int32_t a, int32_t b, int32_t c = -1) {
    e.nodes.push_back({.op = op, .arguments = {a, b, c}});
    return static_cast<int32_t>(e.nodes.size()) - 1;
  };
  const auto output = [&](int32_t node) {
    e.outputs.push_back({"o" + std::to_string(e.outputs.size()), node});
  };
  // Each is another one, so that nothing else needs it.
  const auto registers = [&] {
    e.nodes.push_back({.op = Op::kNumber, .number = -1e30 - 1e28 * static_cast<double>(e.nodes.size())});
    return add(Op::kMax, kX, static_cast<int32_t>(e.nodes.size()) - 1);
  };
  const auto with_operands = [&](int32_t a, int32_t b, const auto& body) {
    const int32_t kept = a == kRegister || b == kRegister ? registers() : kX;
    output(body(a == kRegister ? kept : a, b == kRegister ? kept : b));
  };
  const std::vector<std::pair<int32_t, int32_t>> operands = {
      {kRegister, kK},        {kK, kRegister}, {kRegister, kY}, {kY, kRegister},
      {kRegister, kRegister}, {kX, kY},        {kX, kK},        {kK, kX}};
  for (const auto& [a, b] : operands) {
    for (const Op first : {Op::kAdd, Op::kSub, Op::kMul})
      for (const Op then : {Op::kAdd, Op::kSub, Op::kMul})
        for (const int32_t other : {kZ, kK}) {
          with_operands(a, b, [&](int32_t x, int32_t y) { return add(then, add(first, x, y), other); });
          with_operands(a, b, [&](int32_t x, int32_t y) { return add(then, other, add(first, x, y)); });
        }
    for (const Op sum : {Op::kAdd, Op::kSub})
      for (const int32_t factor : {kK, kY}) {
        const auto product = [&] { return add(Op::kMul, factor, kZ); };
        with_operands(a, b, [&](int32_t x, int32_t y) { return add(sum, add(Op::kMul, x, y), product()); });
        with_operands(a, b, [&](int32_t x, int32_t y) { return add(sum, product(), add(Op::kMul, x, y)); });
      }
    for (const Op comparison : {Op::kLt, Op::kLe, Op::kGt, Op::kGe, Op::kEq, Op::kNe}) {
      with_operands(a, b,
                    [&](int32_t x, int32_t y) { return add(Op::kWhere, add(comparison, x, y), kZ, kY); });
      with_operands(a, b, [&](int32_t x, int32_t y) {
        return add(Op::kWhere, add(comparison, x, y), add(Op::kSub, kZ, kX), kK);
      });
    }
  }
  return e;
}

}  // namespace tycho
