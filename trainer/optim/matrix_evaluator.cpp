// ATen for elementwise operations and LAPACK; our products; sums in a fixed order.
#include "trainer/optim/matrix_evaluator.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/sum.h>

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/expression/expression_check.h"
#include "trainer/expression/step_scalars.h"
#include "trainer/kernels/expression/aten_operation.h"
#include "trainer/kernels/matmul.h"
#include "trainer/kernels/one_thread.h"

namespace tycho {
namespace {

constexpr int64_t kElementsPerTask = 1 << 15;

/// Sums rows of a CPU matrix, each from its first element to its last.
void sum_rows(const Tensor& x_RC, double* sums) {
  const auto* const x = x_RC.const_data_ptr<float>();
  const int64_t columns = x_RC.size(1);
  at::parallel_for(0, x_RC.size(0), std::max<int64_t>(1, kElementsPerTask / columns),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t row = begin; row < end; ++row) {
                       double sum = 0;
                       for (int64_t column = 0; column < columns; ++column) sum += x[row * columns + column];
                       sums[row] = sum;
                     }
                   });
}

/// Sums columns of a CPU matrix, each from its first element to its last.
void sum_columns(const Tensor& x_RC, double* sums) {
  const auto* const x = x_RC.const_data_ptr<float>();
  const int64_t rows = x_RC.size(0), columns = x_RC.size(1);
  std::fill_n(sums, columns, 0.0);
  at::parallel_for(0, columns, std::max<int64_t>(16, kElementsPerTask / rows),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t row = 0; row < rows; ++row)
                       for (int64_t column = begin; column < end; ++column)
                         sums[column] += x[row * columns + column];
                   });
}

Tensor sums_on_cpu(const Tensor& x_RC, ReducedOver over) {
  const bool of_columns = over == ReducedOver::kColumn;
  Tensor sums = at::empty({of_columns ? 1 : x_RC.size(0), of_columns ? x_RC.size(1) : 1},
                          x_RC.options().dtype(at::kDouble));
  auto* const data = sums.mutable_data_ptr<double>();
  of_columns ? sum_columns(x_RC, data) : sum_rows(x_RC, data);
  if (of_columns || over == ReducedOver::kRow) return sums;
  double total = 0;
  for (int64_t row = 0; row < x_RC.size(0); ++row) total += data[row];
  return at::full({1, 1}, total, sums.options());
}

std::vector<int64_t> reduced_dims(ReducedOver over) {
  if (over == ReducedOver::kRow) return {1};
  if (over == ReducedOver::kColumn) return {0};
  return {0, 1};
}

Tensor reduced(const Node& node, const Tensor& x_RC) {
  const std::vector<int64_t> dims = reduced_dims(node.over);
  if (node.op == Op::kLargest) return at::amax(x_RC, dims, true);
  if (node.op == Op::kSmallest) return at::amin(x_RC, dims, true);
  Tensor sums = x_RC.is_cpu() ? sums_on_cpu(x_RC, node.over) : at::sum(x_RC, dims, true, at::kDouble);
  if (node.op == Op::kMean) sums.div_(static_cast<double>(x_RC.numel() / sums.numel()));
  return sums.to(at::kFloat);
}

/// Returns true for a matrix that is stored as its transpose.
bool is_transposed(const Tensor& x) { return !x.is_contiguous() && x.t().is_contiguous(); }

Tensor product(const Tensor& left, const Tensor& right) {
  Tensor out = at::empty({left.size(0), right.size(1)}, left.options());
  if (is_transposed(right))
    matmul_nt(left.contiguous(), right.t(), out);
  else if (is_transposed(left))
    matmul_tn(left.t(), right, out, false);
  else
    matmul_nn(left, right, out);
  return out;
}

/// Decomposes in fp64 where fp32 does not converge, as for matrices with many equal eigenvalues.
std::tuple<Tensor, Tensor> eigh(const Tensor& x) {
  try {
    return at::linalg_eigh(x);
  } catch (const c10::Error&) {
    const auto [values, vectors] = at::linalg_eigh(x.to(at::kDouble));
    return {values.to(at::kFloat), vectors.to(at::kFloat)};
  }
}

class MatrixEvaluation {
 public:
  MatrixEvaluation(const Expression& expression, const MatrixValues& inputs, const at::Device& device)
      : expression_(expression),
        inputs_(inputs),
        device_(device),
        types_(check_expression(expression)),
        scalars_(scalar_values(expression, inputs.scalars)),
        last_use_(types_.size()),
        values_(types_.size()) {
    for (size_t i = 0; i < types_.size(); ++i)
      for_arguments(expression.nodes[i], [&](size_t argument) { last_use_[argument] = i; });
    for (const ExpressionOutput& output : expression.outputs)
      last_use_[static_cast<size_t>(output.node)] = types_.size();
  }

  std::vector<Tensor> run() {
    for (at_ = 0; at_ < types_.size(); ++at_) {
      const Node& node = expression_.nodes[at_];
      if (!types_[at_].scalar) values_[at_] = value_of(node);
      for_arguments(node, [&](size_t argument) {
        if (last_use_[argument] == at_) values_[argument].reset();
      });
    }
    std::vector<Tensor> outputs;
    for (const ExpressionOutput& output : expression_.outputs) {
      const Tensor value = tensor(static_cast<size_t>(output.node)).contiguous();
      outputs.push_back(is_of_input(value) ? value.clone() : value);
    }
    return outputs;
  }

 private:
  template <class Body>
  static void for_arguments(const Node& node, const Body& body) {
    for (int k = 0; k < operation(node.op).arguments; ++k)
      body(static_cast<size_t>(node.arguments[static_cast<size_t>(k)]));
  }

  bool is_of_input(const Tensor& value) const {
    return std::any_of(inputs_.matrices.begin(), inputs_.matrices.end(),
                       [&](const Tensor& input) { return input.defined() && value.is_alias_of(input); });
  }

  /// Returns a node's value; a scalar is rounded to fp32 here.
  Tensor tensor(size_t node) const {
    if (!types_[node].scalar) return values_[node];
    const auto options = at::TensorOptions(device_);
    if (types_[node].boolean) return at::full({1, 1}, scalars_[node] != 0, options.dtype(at::kBool));
    return at::full({1, 1}, scalars_[node], options.dtype(at::kFloat));
  }
  Tensor argument(const Node& node, size_t k) const {
    return node.arguments[k] < 0 ? Tensor() : tensor(static_cast<size_t>(node.arguments[k]));
  }

  Tensor value_of(const Node& node) const {
    if (node.op == Op::kInput) return inputs_.matrices[static_cast<size_t>(node.input)];
    switch (operation(node.op).kind) {
      case OpKind::kReduction: return reduced(node, argument(node, 0).contiguous());
      case OpKind::kMatrix: return of_matrix(node);
      case OpKind::kShape:
        return argument(node, 0).expand({types_[at_].shape.rows, types_[at_].shape.columns}).contiguous();
      default: break;
    }
    const auto second = static_cast<size_t>(node.arguments[1]);
    const bool has_one_exponent = node.op == Op::kPow && types_[second].scalar;
    const float exponent = has_one_exponent ? static_cast<float>(scalars_[second]) : 0.0f;
    return aten_operation(node.op, argument(node, 0), argument(node, 1), argument(node, 2),
                          has_one_exponent ? &exponent : nullptr);
  }

  Tensor of_matrix(const Node& node) const {
    const Tensor a = argument(node, 0);
    switch (node.op) {
      case Op::kMm: return product(a, argument(node, 1));
      case Op::kTranspose: return a.t();
      case Op::kTake: return at::index_select(a, 1, argument(node, 1).flatten().to(at::kLong));
      case Op::kArgsort: return at::argsort(a, /*stable=*/true, 1, false).to(at::kFloat);
      default: break;
    }
    try {
      const OneThread one_thread;
      if (node.op == Op::kQr) return std::get<0>(at::linalg_qr(a)).contiguous();
      const auto [values, vectors] = eigh(a);
      return node.op == Op::kEighValues ? values.view({1, -1}) : vectors.contiguous();
    } catch (const c10::Error& error) {
      fail(ExitCode::kFailure,
           "{}: expected finite numbers in the matrix, got one that cannot be decomposed: {}",
           place_of(expression_, at_), error.what_without_backtrace());
    }
  }

  const Expression& expression_;
  const MatrixValues& inputs_;
  const at::Device device_;
  const std::vector<NodeType> types_;
  const std::vector<double> scalars_;
  std::vector<size_t> last_use_;  // node that uses a node last; the number of nodes for outputs
  std::vector<Tensor> values_;
  size_t at_ = 0;
};

}  // namespace

std::vector<Tensor> evaluate_matrices(const Expression& expression, const MatrixValues& inputs,
                                      const at::Device& device) {
  return MatrixEvaluation(expression, inputs, device).run();
}

}  // namespace tycho
