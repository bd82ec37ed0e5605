// On a CPU codes are widened to bf16, which holds each of them, and multiplied as bf16.
#include "trainer/kernels/fp8.h"

#include <ATen/ops/_scaled_mm.h>
#include <ATen/ops/add.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {
namespace {

at::ScalarType scalar_type(Fp8Format format) {
  return format == Fp8Format::kE4m3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;
}

void check_matrix(const char* op, const char* name, const Fp8Matrix& matrix, const at::Device& device) {
  const auto type = matrix.codes_RD.scalar_type();
  TYCHO_CHECK(type == at::kFloat8_e4m3fn || type == at::kFloat8_e5m2,
              "[{}] {}: expected codes of fp8, got {}", op, name, c10::toString(type));
  check_tensor(op, name, matrix.codes_RD, matrix.codes_RD.sizes(), type, device);
  check_tensor(op, "factors", matrix.factors_R, {matrix.codes_RD.size(0)}, at::kFloat, device);
}

void cpu_product(const Fp8Matrix& left, const Fp8Matrix& right, const Tensor& added_NM, Tensor& out_NM) {
  const Tensor left_ND = left.codes_RD.to(at::kBFloat16), right_MD = right.codes_RD.to(at::kBFloat16);
  const int64_t depth = left_ND.size(1);
  Tensor sums_NM = at::empty(out_NM.sizes(), left.factors_R.options());
  cpu_kernels().matmul({out_NM.size(0), out_NM.size(1), depth},
                       {left_ND.const_data_ptr(), Dtype::kBf16, depth, 1},
                       {right_MD.const_data_ptr(), Dtype::kBf16, depth, 1},
                       {sums_NM.mutable_data_ptr(), Dtype::kFp32, nullptr}, nullptr);
  sums_NM.mul_(left.factors_R.unsqueeze(1)).mul_(right.factors_R);
  if (added_NM.defined()) sums_NM.add_(added_NM);
  out_NM.copy_(sums_NM);
}

void gpu_product(const Fp8Matrix& left, const Fp8Matrix& right, const Tensor& added_NM, bool fast,
                 Tensor& out_NM) {
  // The common dim of a gradient of weights is that of tokens; the others are chosen by layout/fp8_layers.h.
  TYCHO_CHECK(
      left.codes_RD.size(1) % 16 == 0,
      "[fp8] a GPU multiplies fp8 where the common dim is a multiple of 16, got {}: choose micro_batch so "
      "that a pass has a multiple of 16 tokens, or fp8.recipe = \"rowwise_with_gw_hp\"",
      left.codes_RD.size(1));
  const auto multiply = [&](const Fp8Matrix& a, const Fp8Matrix& b, Tensor& out) {
    at::_scaled_mm_out(out, a.codes_RD, b.codes_RD.t(), a.factors_R.unsqueeze(1), b.factors_R.unsqueeze(0),
                       /*bias=*/{}, /*scale_result=*/{}, at::kBFloat16, fast);
  };
  const auto bf16 = out_NM.options().dtype(at::kBFloat16);
  Tensor made_NM;
  if (right.codes_RD.scalar_type() == at::kFloat8_e5m2) {  // which a GPU takes on the left only
    Tensor made_MN = at::empty({out_NM.size(1), out_NM.size(0)}, bf16);
    multiply(right, left, made_MN);
    made_NM = made_MN.t();
  } else {
    if (!added_NM.defined() && out_NM.scalar_type() == at::kBFloat16) return multiply(left, right, out_NM);
    made_NM = at::empty(out_NM.sizes(), bf16);
    multiply(left, right, made_NM);
  }
  if (added_NM.defined())
    at::add_out(out_NM, added_NM, made_NM);
  else
    out_NM.copy_(made_NM);
}

Fp8Matrix room_for(int64_t rows, int64_t depth, Fp8Format format, const Tensor& like) {
  return {at::empty({rows, depth}, like.options().dtype(scalar_type(format))),
          at::empty({rows}, like.options().dtype(at::kFloat))};
}

struct SectionCast {
  RowsShape shape;
  int64_t step;
  Fp8Rule rule;
  bool transposed;
  Fp8Group group;
  const ShareMaxima& share;
};

/// Numbers of bf16, one after the other, as rows for kernels: those of kLength, then what is left.
class Runs {
 public:
  static constexpr int64_t kLength = 4096;
  explicit Runs(const Tensor& x_N) : x_N_(x_N) {}

  int64_t count() const { return (x_N_.numel() + kLength - 1) / kLength; }
  /// Calls body(RowsShape, x, index of the first row).
  template <class Body>
  void for_each(const Body& body) const {
    const int64_t whole = x_N_.numel() / kLength, left = x_N_.numel() % kLength;
    const auto* x = static_cast<const at::BFloat16*>(x_N_.const_data_ptr());
    if (whole > 0) body(RowsShape{whole, kLength}, x, int64_t{0});
    if (left > 0) body(RowsShape{1, left}, x + whole * kLength, whole);
  }

 private:
  const Tensor& x_N_;
};

void cast_section(const SectionCast& cast, const Tensor& x, Fp8Matrix& made) {
  const KernelTable& table = kernels(x);
  const auto floats = x.options().dtype(at::kFloat);
  auto* codes = static_cast<uint8_t*>(made.codes_RD.mutable_data_ptr());
  float* factors = made.factors_R.mutable_data_ptr<float>();
  if (!cast.transposed && cast.group == Fp8Group::kRow) {
    Tensor amax_R = at::empty({cast.share ? cast.shape.rows : 0}, floats);
    if (cast.share) {
      table.fp8_row_amax(cast.shape, cast.step, x.const_data_ptr(), amax_R.mutable_data_ptr<float>(),
                         stream_of(x));
      cast.share(amax_R);
    }
    return table.fp8_rows(cast.shape, cast.step, cast.rule, x.const_data_ptr(),
                          cast.share ? amax_R.const_data_ptr<float>() : nullptr, codes, factors,
                          stream_of(x));
  }
  const bool whole = cast.group == Fp8Group::kWhole;
  Tensor amax_C = at::empty({cast.shape.dim}, floats);
  Tensor workspace = at::empty({table.fp8_amax_workspace(cast.shape)}, floats);
  table.fp8_amax(cast.shape, cast.step, whole, x.const_data_ptr(), amax_C.mutable_data_ptr<float>(),
                 workspace.mutable_data_ptr<float>(), stream_of(x));
  if (cast.share && whole) {  // one number, in every place
    Tensor amax_1 = amax_C.narrow(0, 0, 1).clone();
    cast.share(amax_1);
    amax_C.copy_(amax_1.expand_as(amax_C));
  } else if (cast.share) {
    cast.share(amax_C);
  }
  table.fp8_cast(cast.shape, cast.step, cast.rule, cast.transposed, x.const_data_ptr(),
                 amax_C.const_data_ptr<float>(), codes, factors, stream_of(x));
}

}  // namespace

Fp8Matrix to_fp8(const Tensor& x, bool transposed, Fp8Group group, Fp8Rule rule,
                 const std::vector<int64_t>& sections, const ShareMaxima& share) {
  const char* op = "to_fp8";
  const Range range("tycho::to_fp8");
  const RowsShape shape = rows_of(op, "x", x);
  const int64_t step = row_step(op, "x", x, x.sizes(), at::kBFloat16, x.device());
  const int64_t rows = transposed ? shape.dim : shape.rows, depth = transposed ? shape.rows : shape.dim;
  Fp8Matrix made = room_for(rows, depth, rule.format, x);
  if (group == Fp8Group::kRow || sections.size() < 2) {
    cast_section({shape, step, rule, transposed, group, share}, x, made);
    return made;
  }
  int64_t first = 0;
  for (const int64_t n : sections) {
    Fp8Matrix section = {made.codes_RD.narrow(0, first, n), made.factors_R.narrow(0, first, n)};
    const RowsShape of_section = transposed ? RowsShape{shape.rows, n} : RowsShape{n, shape.dim};
    cast_section({of_section, step, rule, transposed, group, share}, x.narrow(transposed ? 1 : 0, first, n),
                 section);
    first += n;
  }
  TYCHO_CHECK(first == rows, "[{}] expected sections of {} rows, got {}", op, rows, first);
  return made;
}

Fp8Matrix fp8_transposed(const Fp8Matrix& matrix) {
  const Range range("tycho::fp8_transposed");
  const Tensor& codes_RD = matrix.codes_RD;
  check_matrix("fp8_transposed", "matrix", matrix, codes_RD.device());
  const RowsShape shape = rows_of("fp8_transposed", "matrix", codes_RD);
  Fp8Matrix made = {at::empty({shape.dim, shape.rows}, codes_RD.options()),
                    at::empty({shape.dim}, matrix.factors_R.options())};
  kernels(codes_RD).fp8_turn(shape, static_cast<const uint8_t*>(codes_RD.const_data_ptr()),
                             matrix.factors_R.const_data_ptr<float>(),
                             static_cast<uint8_t*>(made.codes_RD.mutable_data_ptr()),
                             made.factors_R.mutable_data_ptr<float>(), stream_of(codes_RD));
  return made;
}

Tensor fp8_amax(const Tensor& x_N) {
  check_tensor("fp8_amax", "x", x_N, {x_N.numel()}, at::kBFloat16, x_N.device());
  const Runs runs(x_N);
  Tensor amax_R = at::empty({runs.count()}, x_N.options().dtype(at::kFloat));
  runs.for_each([&](RowsShape shape, const void* x, int64_t first) {
    kernels(x_N).fp8_row_amax(shape, shape.dim, x, amax_R.mutable_data_ptr<float>() + first, stream_of(x_N));
  });
  return at::amax(amax_R, {0}, /*keepdim=*/true);
}

void fp8_codes(const Tensor& x_N, const Tensor& amax_1, Tensor& codes_N) {
  const char* op = "fp8_codes";
  check_tensor(op, "x", x_N, {x_N.numel()}, at::kBFloat16, x_N.device());
  check_tensor(op, "amax", amax_1, {1}, at::kFloat, x_N.device());
  check_tensor(op, "codes", codes_N, x_N.sizes(), at::kFloat8_e4m3fn, x_N.device());
  const Runs runs(x_N);
  Tensor factors_R = at::empty({runs.count()}, amax_1.options());
  auto* const codes = static_cast<uint8_t*>(codes_N.mutable_data_ptr());
  runs.for_each([&](RowsShape shape, const void* x, int64_t first) {
    kernels(x_N).fp8_cast(shape, shape.dim, {}, /*transposed=*/false, x, amax_1.const_data_ptr<float>(),
                          codes + first * Runs::kLength, factors_R.mutable_data_ptr<float>() + first,
                          stream_of(x_N));
  });
}

// The kernel casts a zero for each magnitude.
Tensor fp8_factors(const Tensor& amax_P) {
  check_tensor("fp8_factors", "amax", amax_P, {amax_P.numel()}, at::kFloat, amax_P.device());
  const Tensor zeros = at::zeros({amax_P.numel(), 1}, amax_P.options().dtype(at::kBFloat16));
  Fp8Matrix made = room_for(amax_P.numel(), 1, Fp8Format::kE4m3, zeros);
  kernels(zeros).fp8_rows({amax_P.numel(), 1}, 1, {}, zeros.const_data_ptr(), amax_P.const_data_ptr<float>(),
                          static_cast<uint8_t*>(made.codes_RD.mutable_data_ptr()),
                          made.factors_R.mutable_data_ptr<float>(), stream_of(zeros));
  return made.factors_R;
}

RowCast::RowCast(const Tensor& x, Fp8Group group, bool power_of_two) : power_of_two_(power_of_two) {
  made_ = room_for(x.size(0), x.size(1), Fp8Format::kE4m3, x);
  if (group == Fp8Group::kWhole) amax_R_ = at::empty_like(made_.factors_R);
}

CastRows RowCast::memory(std::string_view op, RowsShape shape, const Tensor& like) {
  TYCHO_CHECK(like.scalar_type() == at::kBFloat16, "[{}] expected bf16 beside a cast to fp8, got {}", op,
              c10::toString(like.scalar_type()));
  check_tensor(op, "codes", made_.codes_RD, {shape.rows, shape.dim}, at::kFloat8_e4m3fn, like.device());
  if (!is_made()) return {.amax_R = amax_R_.mutable_data_ptr<float>()};
  return {power_of_two_, static_cast<uint8_t*>(made_.codes_RD.mutable_data_ptr()),
          made_.factors_R.mutable_data_ptr<float>()};
}

Fp8Matrix RowCast::finish(const Tensor& x) {
  if (is_made()) return made_;
  const Tensor amax = at::amax(amax_R_, {0});
  kernels(x).fp8_cast({x.size(0), x.size(1)}, x.size(1), {Fp8Format::kE4m3, power_of_two_},
                      /*transposed=*/false, x.const_data_ptr(), amax.const_data_ptr<float>(),
                      static_cast<uint8_t*>(made_.codes_RD.mutable_data_ptr()),
                      made_.factors_R.mutable_data_ptr<float>(), stream_of(x));
  return made_;
}

void fp8_product(const Fp8Matrix& left, const Fp8Matrix& right, const Tensor& added_NM, bool fast,
                 Tensor& out_NM) {
  const char* op = "fp8_product";
  const Range range("tycho::fp8_product");
  const auto type = out_NM.scalar_type();
  check_matrix(op, "left", left, out_NM.device());
  check_matrix(op, "right", right, out_NM.device());
  const int64_t depth = left.codes_RD.size(1);
  TYCHO_CHECK(depth == right.codes_RD.size(1),
              "[{}] the operands do not fit: their common dim is {} on the left and {} on the right", op,
              depth, right.codes_RD.size(1));
  TYCHO_CHECK(type == at::kBFloat16 || type == at::kFloat, "[{}] expected a result of bf16 or fp32, got {}",
              op, c10::toString(type));
  check_tensor(op, "result", out_NM, {left.codes_RD.size(0), right.codes_RD.size(0)}, type, out_NM.device());
  if (added_NM.defined()) check_tensor(op, "added", added_NM, out_NM.sizes(), type, out_NM.device());
  if (out_NM.is_cpu())
    cpu_product(left, right, added_NM, out_NM);
  else
    gpu_product(left, right, added_NM, fast, out_NM);
}

}  // namespace tycho
