// Operations of expressions: their names, arguments and kinds, in one table. Kernels of every instruction set
// include it, so it defines no function.
#pragma once
#include <cstdint>

namespace tycho {

/// Operation of a node. The order is that of kOperations.
enum class Op : uint8_t {
  kNumber,
  kInput,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,
  kMin,
  kMax,
  kFma,
  kClamp,
  kNeg,
  kAbs,
  kSign,
  kFloor,
  kSqrt,
  kRsqrt,
  kExp,
  kLog,
  kTanh,
  kSigmoid,
  kErf,
  kLt,
  kLe,
  kGt,
  kGe,
  kEq,
  kNe,
  kAnd,
  kOr,
  kNot,
  kWhere,
  kBroadcast,
  kEvery,
  kSum,
  kMean,
  kLargest,
  kSmallest,
  kMm,
  kTranspose,
  kTake,
  kArgsort,
  kQr,
  kEighValues,
  kEighVectors,
};

/// Kinds of operations: sources of values, numbers from numbers, booleans from numbers, booleans from
/// booleans, a choice by a boolean, the shape of another value, reductions over an axis, and operations on
/// whole matrices.
enum class OpKind : uint8_t {
  kSource,
  kArithmetic,
  kComparison,
  kLogic,
  kChoice,
  kShape,
  kReduction,
  kMatrix
};

struct Operation {
  const char* name;
  int arguments;
  OpKind kind;
};

inline constexpr Operation kOperations[] = {
    {"number", 0, OpKind::kSource},       {"input", 0, OpKind::kSource},
    {"add", 2, OpKind::kArithmetic},      {"sub", 2, OpKind::kArithmetic},
    {"mul", 2, OpKind::kArithmetic},      {"div", 2, OpKind::kArithmetic},
    {"pow", 2, OpKind::kArithmetic},      {"min", 2, OpKind::kArithmetic},
    {"max", 2, OpKind::kArithmetic},      {"fma", 3, OpKind::kArithmetic},
    {"clamp", 3, OpKind::kArithmetic},    {"neg", 1, OpKind::kArithmetic},
    {"abs", 1, OpKind::kArithmetic},      {"sign", 1, OpKind::kArithmetic},
    {"floor", 1, OpKind::kArithmetic},    {"sqrt", 1, OpKind::kArithmetic},
    {"rsqrt", 1, OpKind::kArithmetic},    {"exp", 1, OpKind::kArithmetic},
    {"log", 1, OpKind::kArithmetic},      {"tanh", 1, OpKind::kArithmetic},
    {"sigmoid", 1, OpKind::kArithmetic},  {"erf", 1, OpKind::kArithmetic},
    {"lt", 2, OpKind::kComparison},       {"le", 2, OpKind::kComparison},
    {"gt", 2, OpKind::kComparison},       {"ge", 2, OpKind::kComparison},
    {"eq", 2, OpKind::kComparison},       {"ne", 2, OpKind::kComparison},
    {"and", 2, OpKind::kLogic},           {"or", 2, OpKind::kLogic},
    {"not", 1, OpKind::kLogic},           {"where", 3, OpKind::kChoice},
    {"broadcast", 2, OpKind::kShape},     {"every", 3, OpKind::kChoice},
    {"sum", 1, OpKind::kReduction},       {"mean", 1, OpKind::kReduction},
    {"largest", 1, OpKind::kReduction},   {"smallest", 1, OpKind::kReduction},
    {"mm", 2, OpKind::kMatrix},           {"transpose", 1, OpKind::kMatrix},
    {"take", 2, OpKind::kMatrix},         {"argsort", 1, OpKind::kMatrix},
    {"qr", 1, OpKind::kMatrix},           {"eigh_values", 1, OpKind::kMatrix},
    {"eigh_vectors", 1, OpKind::kMatrix},
};
inline constexpr int kNumOps = static_cast<int>(sizeof(kOperations) / sizeof(kOperations[0]));
static_assert(kNumOps == static_cast<int>(Op::kEighVectors) + 1);

/// Elements that a reduction takes together: kRow gives one value for each row, kColumn for each column,
/// kMatrix one value; kTensor is kMatrix over the whole parameter, whichever rank has which part.
enum class ReducedOver : uint8_t { kNothing, kRow, kColumn, kMatrix, kTensor };
inline constexpr const char* kReducedOverNames[] = {"", "row", "column", "matrix", "tensor"};

}  // namespace tycho
