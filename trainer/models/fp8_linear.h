// The products of a linear layer in fp8, as torchao's Float8Linear.
#pragma once
#include <optional>

#include "trainer/kernels/fp8.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/layout/fp8_layers.h"
#include "trainer/models/activations.h"
#include "trainer/models/parallel_region.h"
#include "trainer/sharding/gathered_unit.h"

namespace tycho {

// N tokens, K inputs, M outputs, those of this rank along tp. Weights are [M, K], or [K, M] when in_out.
// Layers that are stacked in one matrix have scales of their own. x, dy and weights are cast again by each
// function; weights that are codes already are transposed where a product needs it. Ranks along tp share the
// largest magnitudes that scales are made of, so that codes are those of one rank: then all functions but
// has_fp8_weight_gradient are collective.

/// A product in fp8, or in the inputs' own dtype if `product` is null. region: the ranks that share the
/// layer.
struct Fp8Linear {
  const Fp8Product* product = nullptr;
  const ParallelRegion* region = nullptr;
  const Fp8Matrix* x = nullptr;            // x of fp8_linear, where input_cast() has made it
  const Tensor* weight_factors = nullptr;  // of the weight's rows, where the weight is codes (CodedUnit)

  explicit operator bool() const { return product != nullptr; }
};
/// Returns the product of that view of a block's views, for a pass of training or evaluation. Generation
/// computes in bf16: it has no pass.
Fp8Linear fp8_linear_of(const BlockParams& at, int view, const ParallelRegion& region, const Views& p,
                        const BlockActivations& act);
Fp8Linear fp8_linear_of(const BlockParams& at, int view, const ParallelRegion& region, const Views& p);

/// Returns a cast for the kernel that computes x, the product's whole input on this rank; none where the
/// product is not in fp8, or ranks share the scales of x or gather its rows.
std::optional<RowCast> input_cast(const Fp8Linear& layer, const Tensor& x_NK);
/// Returns the cast's result for Fp8Linear::x, or nothing without a cast.
std::optional<Fp8Matrix> finished(std::optional<RowCast>& cast, const Tensor& x_NK);

/// y = weight x (+ added, which may be y or undefined).
void fp8_linear(const Fp8Linear& layer, const Tensor& weight, bool in_out, const Tensor& x_NK,
                const Tensor& added_NM, Tensor& y_NM);
/// Computes dx from dy. The gradients of stacked layers are added in bf16, as autograd adds them.
void fp8_input_gradient(const Fp8Linear& layer, const Tensor& weight, bool in_out, const Tensor& dy_NM,
                        Tensor& dx_NK);
/// Computes the gradient of the weight, which is written or added. Requires has_fp8_weight_gradient().
void fp8_weight_gradient(const Fp8Linear& layer, bool in_out, const Tensor& x_NK, const Tensor& dy_NM,
                         Tensor& dw, bool add);
/// False if the recipe multiplies gradients of weights in bf16.
bool has_fp8_weight_gradient(const Fp8Linear& layer);

}  // namespace tycho
