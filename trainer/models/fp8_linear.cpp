// Each operand is cast so that the dim of the sum is contiguous.
#include "trainer/models/fp8_linear.h"

#include <ATen/core/TensorBody.h>

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

/// Returns how ranks along tp share the maxima of a matrix; empty where each has all that a scale needs.
ShareMaxima shared_if(bool is_part, const Fp8Linear& layer) {
  if (!is_part || layer.region == nullptr || !layer.region->is_shared()) return {};
  return [region = layer.region](Tensor& amax) { amax.copy_(region->gathered(amax).amax(0)); };
}

const Tensor* factors_of(const Tensor& weight, const Views& p, const Fp8Product& product) {
  return weight.scalar_type() == at::kFloat8_e4m3fn ? &p[static_cast<size_t>(product.factors)] : nullptr;
}

/// Returns a layer's weight as an operand: its own rows, or its columns. It is cast, unless it is codes,
/// which all ranks have made with the scale of the whole matrix.
Fp8Matrix weight_operand(const Fp8Linear& layer, const Tensor& weight, int64_t first_row, bool transposed,
                         Fp8Group group, bool cuts_sum, const std::vector<int64_t>& sections) {
  if (layer.weight_factors == nullptr)
    return to_fp8(weight, transposed, group, casts_of(layer.product->recipe).number, sections,
                  shared_if(cuts_sum || group == Fp8Group::kWhole, layer));
  const Fp8Matrix codes = {weight, layer.weight_factors->narrow(0, first_row, weight.size(0))};
  return transposed ? fp8_transposed(codes) : codes;
}

}  // namespace

Fp8Linear fp8_linear_of(const BlockParams& at, int view, const ParallelRegion& region, const Views& p,
                        const BlockActivations&) {
  for (const Fp8Product& product : at.fp8)
    if (product.view == view)
      return {&product, &region, nullptr, factors_of(p[static_cast<size_t>(view)], p, product)};
  return {};
}
Fp8Linear fp8_linear_of(const BlockParams&, int, const ParallelRegion&, const Views&) { return {}; }

bool has_fp8_weight_gradient(const Fp8Linear& layer) {
  return layer.product->recipe != Fp8Recipe::kRowwiseWithGwHp;
}

std::optional<RowCast> input_cast(const Fp8Linear& layer, const Tensor& x_NK) {
  if (!layer) return std::nullopt;
  const bool shared = layer.region != nullptr && layer.region->is_shared();
  if (shared && (layer.product->cuts_inputs || layer.region->shape().cuts_tokens())) return std::nullopt;
  const Fp8Casts casts = casts_of(layer.product->recipe);
  return RowCast(x_NK, casts.group, casts.number.power_of_two);
}

std::optional<Fp8Matrix> finished(std::optional<RowCast>& cast, const Tensor& x_NK) {
  if (!cast) return std::nullopt;
  return cast->finish(x_NK);
}

// A row of an operand is cut where ranks have parts of the dim of the sum; a whole operand is cut where they
// have parts of either of its dims.
void fp8_linear(const Fp8Linear& layer, const Tensor& weight, bool in_out, const Tensor& x_NK,
                const Tensor& added_NM, Tensor& y_NM) {
  const Fp8Product& product = *layer.product;
  const Fp8Casts casts = casts_of(product.recipe);
  const bool cuts_sum = product.cuts_inputs;
  fp8_product(
      layer.x ? *layer.x
              : to_fp8(x_NK, /*transposed=*/false, casts.group, casts.number, {}, shared_if(cuts_sum, layer)),
      weight_operand(layer, weight, 0, /*transposed=*/in_out, casts.group, cuts_sum, product.outputs),
      added_NM, /*fast=*/true, y_NM);
}

void fp8_input_gradient(const Fp8Linear& layer, const Tensor& weight, bool in_out, const Tensor& dy_NM,
                        Tensor& dx_NK) {
  const Fp8Casts casts = casts_of(layer.product->recipe);
  const bool cuts_sum = !layer.product->cuts_inputs;
  int64_t first = 0;
  for (const int64_t outputs : layer.product->outputs) {
    fp8_product(to_fp8(dy_NM.narrow(1, first, outputs), /*transposed=*/false, casts.group, casts.gradient, {},
                       shared_if(cuts_sum, layer)),
                weight_operand(layer, weight.narrow(in_out ? 1 : 0, first, outputs), in_out ? 0 : first,
                               /*transposed=*/!in_out, casts.weight_to_input, cuts_sum, {}),
                first > 0 ? dx_NK : Tensor(), /*fast=*/false, dx_NK);
    first += outputs;
  }
}

// Sums are over tokens, and a rank has all of its columns' tokens.
void fp8_weight_gradient(const Fp8Linear& layer, bool in_out, const Tensor& x_NK, const Tensor& dy_NM,
                         Tensor& dw, bool add) {
  const Fp8Product& product = *layer.product;
  const Fp8Casts casts = casts_of(product.recipe);
  const bool whole = casts.group == Fp8Group::kWhole;
  const Fp8Matrix x_KN = to_fp8(x_NK, /*transposed=*/true, casts.group, casts.number, {},
                                shared_if(whole && product.cuts_inputs, layer)),
                  dy_MN = to_fp8(dy_NM, /*transposed=*/true, casts.group, casts.gradient, product.outputs,
                                 shared_if(whole && !product.cuts_inputs, layer));
  fp8_product(in_out ? x_KN : dy_MN, in_out ? dy_MN : x_KN, add ? dw : Tensor(), /*fast=*/false, dw);
}

}  // namespace tycho
