// One operation on numbers: the definition that reference, folding of constants and scalars of a step share.
#pragma once
#include "trainer/expression/operations.h"

namespace tycho {

/// Arguments of an operation; unused ones are ignored. Booleans are 0 and 1.
template <class T>
struct Operands {
  T a = 0, b = 0, c = 0;
  bool scalar_exponent = false;  // kPow of elements: b is one number for all of them
};

/// Return the operation's result in double or fp32. Requires an operation on elements: no source, reduction
/// or matrix operation. Compiled without contraction.
double apply(Op op, const Operands<double>& x);
float apply(Op op, const Operands<float>& x);

}  // namespace tycho
