// What products in fp8 save on a GPU, and what their casts cost. Torch-free.
#pragma once
#include <cstdint>

#include "trainer/families/decoder_spec.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// The products of a micro-batch on one rank.
struct Fp8Calls {
  double tokens = 0;       // that the rank multiplies at once
  int64_t tp = 1;          // ranks that share each layer
  double flops_per_s = 0;  // that products reach in bf16
  double bytes_per_s = 0;  // that casts read and write
};

/// Returns the seconds that fp8 saves in all layers' products with one micro-batch, minus those of their
/// casts: 0 without fp8, negative where casts cost more. A product in fp8 takes 1 / 1.7 of its time in bf16,
/// as measured on an H100 (docs/gpu.md); casts take 3 bytes an element, or 5 where the maxima of columns or
/// of the whole matrix are found first. The copies that accumulate gradients of weights are not counted.
double fp8_saved_s(const TrainConfig& config, const DecoderSpec& spec, const Fp8Calls& calls);

}  // namespace tycho
