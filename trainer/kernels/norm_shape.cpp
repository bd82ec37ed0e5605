// Derives rows, groups and steps, and checks that y has the same rows.
#include "trainer/kernels/norm_shape.h"

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"

namespace tycho {

NormShape norm_shape(std::string_view op, const Tensor& x_NC, const Tensor& weight_D, std::string_view y_name,
                     const Tensor& y_NC) {
  const RowsShape rows = rows_of(op, "x", x_NC);
  TYCHO_CHECK(weight_D.defined() && weight_D.dim() == 1, "[{}] weight: expected [D], got {} dims", op,
              weight_D.defined() ? weight_D.dim() : 0);
  const int64_t dim = weight_D.size(0);
  TYCHO_CHECK(dim > 0 && rows.dim % dim == 0,
              "[{}] x: expected rows that are a multiple of the weight's {} elements, got {}", op, dim,
              rows.dim);
  const auto dtype = x_NC.scalar_type();
  const auto device = x_NC.device();
  check_tensor(op, "weight", weight_D, {dim}, dtype, device);
  return {.rows = rows.rows,
          .groups = rows.dim / dim,
          .dim = dim,
          .x_step = row_step(op, "x", x_NC, x_NC.sizes(), dtype, device),
          .y_step = row_step(op, y_name, y_NC, x_NC.sizes(), dtype, device)};
}

NormTerms no_terms() {
  static const Tensor none;
  thread_local Tensor no_sum;
  return {none, no_sum, none};
}

NormAdds norm_adds(std::string_view op, const NormShape& shape, const Tensor& x_NC, NormTerms terms) {
  const bool before = terms.before.defined(), after = terms.after.defined();
  if (!before && !after) return {};
  TYCHO_CHECK(shape.groups == 1 && before != after, "[{}] expected one group and one place of an addition",
              op);
  const auto check = [&](const char* name, const Tensor& rows) {
    check_tensor(op, name, rows, {shape.rows, shape.dim}, x_NC.scalar_type(), x_NC.device());
  };
  if (after) {
    check("after", terms.after);
    return {.after = terms.after.const_data_ptr()};
  }
  check("before", terms.before), check("sum", terms.sum);
  return {.before = terms.before.const_data_ptr(), .sum = terms.sum.mutable_data_ptr()};
}

}  // namespace tycho
