// Arithmetic of Lua tensors: operators, functions, comparisons, reductions, products.
#include "bindings/run/objects/tensor_math.h"

#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "bindings/run/session_objects.h"

namespace tycho {
namespace {

TensorObject& tensor_of(Call& call) { return call.self<TensorObject>(); }
const TensorView& elements(Call& call) { return *tensor_of(call).view; }

/// Pushes a new tensor; it owns its bytes, which are counted.
int push_result(Call& call, std::unique_ptr<TensorView> result, const TensorObject& like) {
  push_tensor(call, std::move(result), like.of);
  return 1;
}

int push_part(Call& call, std::unique_ptr<TensorView> part) {
  return push_result(call, std::move(part), tensor_of(call));
}

/// Returns an operand at a stack index: a tensor, or a number as a tensor on the device of `like`.
std::shared_ptr<const TensorView> operand(Call& call, int index, const TensorView& like, const char* what) {
  if (lua_type(call.L, index) == LUA_TNUMBER) return like.scalar(lua_tonumber(call.L, index));
  if (Objects::class_of(call.L, index) != &tensor_class())
    throw ScriptError("E_ARGUMENT", fmt::format("{} expects a tensor or a number, got {}", what,
                                                luaL_typename(call.L, index)));
  const auto object =
      std::static_pointer_cast<TensorObject>(Objects::target_of(call.L, tensor_class(), index));
  return {object, object->view.get()};
}

/// Applies an operator to both operands in the order written.
template <TensorOp op>
int operate(Call& call) {
  static constexpr const char* kSigns[] = {"+", "-", "*", "/", "^"};
  const std::string what = fmt::format("tensor {} x: x", kSigns[static_cast<int>(op)]);
  const auto left = operand(call, 1, elements(call), what.c_str()),
             right = operand(call, 2, elements(call), what.c_str());
  return push_result(call, left->combined(op, *right), tensor_of(call));
}

template <TensorOp op>
int compare(Call& call) {
  const auto right = operand(call, 2, elements(call), "tensor: a comparison");
  return push_result(call, elements(call).combined(op, *right), tensor_of(call));
}

template <TensorFunction function>
int apply(Call& call) {
  return push_result(call, elements(call).applied(function), tensor_of(call));
}

/// Returns the dimension that an argument names, from 0.
std::optional<int64_t> dim_argument(Call& call, int arg) {
  if (!call.has(arg)) return std::nullopt;
  const int64_t dim = call.integer(arg);
  if (dim > std::ssize(elements(call).shape())) refuse_shape(call, fmt::format("no dimension {}", dim));
  return dim - 1;
}

/// Reduces a tensor: x:sum() is a number, x:sum(1) a tensor without the first dimension. Positions count from
/// 1.
template <TensorReduction how>
int reduce(Call& call) {
  const std::optional<int64_t> dim = dim_argument(call, 1);
  std::unique_ptr<TensorView> result = elements(call).reduced(how, dim);
  if (how == TensorReduction::kArgmax) result = result->combined(TensorOp::kAdd, *result->scalar(1));
  if (!dim) return call.push(result->values().at(0));
  return push_result(call, std::move(result), tensor_of(call));
}

int multiply_matrices(Call& call) {
  const auto right = operand(call, 2, elements(call), "tensor:mm");
  return push_result(call, elements(call).matmul(*right), tensor_of(call));
}

int softmax(Call& call) {
  const int64_t last = std::ssize(elements(call).shape()) - 1;
  return push_result(call, elements(call).softmax(dim_argument(call, 1).value_or(last)), tensor_of(call));
}

/// Pushes two results: values, and positions from 1.
int top(Call& call) {
  auto [values, positions] = elements(call).largest(call.integer(1));
  push_result(call, std::move(values), tensor_of(call));
  push_result(call, positions->combined(TensorOp::kAdd, *positions->scalar(1)), tensor_of(call));
  return 2;
}

int transpose(Call& call) {
  const int64_t dims = std::ssize(elements(call).shape());
  if (dims < 2) refuse_shape(call, "tensor:transpose expects two dimensions or more");
  return push_part(call, elements(call).transposed(dim_argument(call, 1).value_or(dims - 2),
                                                   dim_argument(call, 2).value_or(dims - 1)));
}

/// Reshapes a tensor: in x:view(2, -1), one size may be -1 and is computed from the others.
int reshape(Call& call) {
  std::vector<int64_t> shape;
  int64_t known = 1, open = -1;
  for (int arg = 1; call.has(arg); ++arg) {
    shape.push_back(call.integer(arg));
    if (shape.back() >= 0) known *= shape.back();
    if (shape.back() < 0 && std::exchange(open, std::ssize(shape) - 1) >= 0)
      refuse_shape(call, "tensor:view takes -1 once");
  }
  if (open >= 0) {
    if (known == 0 || elements(call).numel() % known != 0)
      refuse_shape(call, fmt::format("tensor:view: {} elements are not a multiple of {}",
                                     elements(call).numel(), known));
    shape[static_cast<size_t>(open)] = elements(call).numel() / known;
  }
  return push_result(call, elements(call).reshaped(shape), tensor_of(call));
}

/// Compares two tensors: a == b when the shapes and all numbers are equal. NaN equals nothing.
int equals(Call& call) {
  const auto left = operand(call, 1, elements(call), "=="), right = operand(call, 2, elements(call), "==");
  return call.push(left->shape() == right->shape() && left->values() == right->values());
}

Method reduction(const char* name, const char* what, Body body) {
  static std::map<std::string, std::string> docs;  // a Method keeps a pointer
  const std::string& doc =
      docs.try_emplace(name, fmt::format("{} of all, or along a dimension: a tensor without it.", what))
          .first->second;
  return {name,
          "number",
          doc.c_str(),
          {{"dim", Arg::Kind::kInteger, "Dimension; default all of them.", true, 1}},
          body};
}

Method comparison(const char* name, const char* doc, Body body) {
  return {name,
          "tycho.run.Tensor",
          doc,
          {{"x", Arg::Kind::kAny, "A number, or a tensor of a compatible shape.", false}},
          body};
}

}  // namespace

std::unique_ptr<TensorView> masked_by(Call& call, int index) {
  return elements(call).masked(*operand(call, index, elements(call), "tensor[mask]"));
}

std::vector<Method> tensor_math_methods() {
  using Kind = Arg::Kind;
  return {reduction("sum", "Sum", reduce<TensorReduction::kSum>),
          reduction("mean", "Mean", reduce<TensorReduction::kMean>),
          reduction("min", "Smallest element", reduce<TensorReduction::kMin>),
          reduction("max", "Largest element", reduce<TensorReduction::kMax>),
          reduction("argmax", "Position of the largest element", reduce<TensorReduction::kArgmax>),
          {"topk",
           "tycho.run.Tensor, tycho.run.Tensor",
           "The largest elements of the last dimension, the largest first, and their positions.",
           {{"k", Kind::kInteger, "How many.", false, 1}},
           top},
          {"softmax",
           "tycho.run.Tensor",
           "Shares along a dimension: exponentials over their sum.",
           {{"dim", Kind::kInteger, "Dimension; default the last.", true, 1}},
           softmax},
          {"mm",
           "tycho.run.Tensor",
           "Matrix product with x, also of batches of matrices.",
           {{"x", Kind::kAny, "A tensor.", false}},
           multiply_matrices},
          {"transpose",
           "tycho.run.Tensor",
           "Two dimensions swapped, as a view.",
           {{"a", Kind::kInteger, "Default the last but one.", true, 1},
            {"b", Kind::kInteger, "Default the last.", true, 1}},
           transpose},
          {"view",
           "tycho.run.Tensor",
           "The elements with other sizes, as a view where that is possible.",
           {{"size", Kind::kInteger, "Of the first dimension; -1: what is left.", false, -1},
            {"size2", Kind::kInteger, "Of the second.", true, -1},
            {"size3", Kind::kInteger, "Of the third.", true, -1},
            {"size4", Kind::kInteger, "Of the fourth.", true, -1},
            {"size5", Kind::kInteger, "Of the fifth.", true, -1}},
           reshape},
          {"abs", "tycho.run.Tensor", "Absolute values.", {}, apply<TensorFunction::kAbs>},
          {"sqrt", "tycho.run.Tensor", "Square roots.", {}, apply<TensorFunction::kSqrt>},
          {"exp", "tycho.run.Tensor", "Exponentials.", {}, apply<TensorFunction::kExp>},
          {"log", "tycho.run.Tensor", "Natural logarithms.", {}, apply<TensorFunction::kLog>},
          comparison("eq", "1 where equal to x, else 0.", compare<TensorOp::kEq>),
          comparison("ne", "1 where not equal to x, else 0.", compare<TensorOp::kNe>),
          comparison("lt", "1 where less than x, else 0.", compare<TensorOp::kLt>),
          comparison("le", "1 where at most x, else 0.", compare<TensorOp::kLe>),
          comparison("gt", "1 where greater than x, else 0: w:gt(0):mean() is a fraction.",
                     compare<TensorOp::kGt>),
          comparison("ge", "1 where at least x, else 0.", compare<TensorOp::kGe>)};
}

std::vector<Operator> tensor_operators() {
  return {{"__add", operate<TensorOp::kAdd>},
          {"__sub", operate<TensorOp::kSub>},
          {"__mul", operate<TensorOp::kMul>},
          {"__div", operate<TensorOp::kDiv>},
          {"__pow", operate<TensorOp::kPow>},
          {"__unm", apply<TensorFunction::kNeg>},
          {"__eq", equals}};
}

}  // namespace tycho
