// Each operand is cast so that the dim of the sum is contiguous.
#include "trainer/models/fp8_linear.h"

#include "trainer/kernels/fp8.h"

namespace tycho {
namespace {

/// How a recipe casts.
struct Fp8Casts {
  Fp8Group group;            // of operands, but
  Fp8Group weight_to_input;  // of weights for gradients of inputs
  Fp8Rule number, gradient;  // for x and weights, and for dy
};

Fp8Casts casts_of(Fp8Recipe recipe) {
  if (recipe == Fp8Recipe::kTensorwise)
    return {Fp8Group::kWhole, Fp8Group::kWhole, {Fp8Format::kE4m3, false}, {Fp8Format::kE5m2, false}};
  const Fp8Rule rule = {Fp8Format::kE4m3, /*power_of_two=*/true};
  const bool one = recipe == Fp8Recipe::kRowwiseWithGwHp;
  return {Fp8Group::kRow, one ? Fp8Group::kWhole : Fp8Group::kRow, rule, rule};
}

}  // namespace

const Fp8Product* fp8_product_of(const BlockParams& at, int view, const BlockActivations&) {
  for (const Fp8Product& product : at.fp8)
    if (product.view == view) return &product;
  return nullptr;
}
const Fp8Product* fp8_product_of(const BlockParams&, int) { return nullptr; }

bool has_fp8_weight_gradient(const Fp8Product& product) {
  return product.recipe != Fp8Recipe::kRowwiseWithGwHp;
}

void fp8_linear(const Fp8Product& product, const Tensor& weight, bool in_out, const Tensor& x_NK,
                const Tensor& added_NM, Tensor& y_NM) {
  const Fp8Casts casts = casts_of(product.recipe);
  fp8_product(to_fp8(x_NK, /*transposed=*/false, casts.group, casts.number),
              to_fp8(weight, /*transposed=*/in_out, casts.group, casts.number, product.outputs), added_NM,
              /*fast=*/true, y_NM);
}

void fp8_input_gradient(const Fp8Product& product, const Tensor& weight, bool in_out, const Tensor& dy_NM,
                        Tensor& dx_NK) {
  const Fp8Casts casts = casts_of(product.recipe);
  int64_t first = 0;
  for (const int64_t outputs : product.outputs) {
    fp8_product(to_fp8(dy_NM.narrow(1, first, outputs), /*transposed=*/false, casts.group, casts.gradient),
                to_fp8(weight.narrow(in_out ? 1 : 0, first, outputs), /*transposed=*/!in_out,
                       casts.weight_to_input, casts.number),
                first > 0 ? dx_NK : Tensor(), /*fast=*/false, dx_NK);
    first += outputs;
  }
}

void fp8_weight_gradient(const Fp8Product& product, bool in_out, const Tensor& x_NK, const Tensor& dy_NM,
                         Tensor& dw, bool add) {
  const Fp8Casts casts = casts_of(product.recipe);
  const Fp8Matrix x_KN = to_fp8(x_NK, /*transposed=*/true, casts.group, casts.number),
                  dy_MN = to_fp8(dy_NM, /*transposed=*/true, casts.group, casts.gradient, product.outputs);
  fp8_product(in_out ? x_KN : dy_MN, in_out ? dy_MN : x_KN, add ? dw : Tensor(), /*fast=*/false, dw);
}

}  // namespace tycho
