// Prices fp8 on a GPU: what its products save, and what its casts cost. Torch-free.
#pragma once
#include <cstdint>

#include "trainer/families/decoder_spec.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// The products of a micro-batch on one rank.
struct Fp8Calls {
  double tokens = 0;         // that the rank multiplies at once
  int64_t tp = 1;            // ranks that share each layer
  bool cuts_tokens = false;  // ranks along tp gather the tokens of a norm
  bool has_codes = false;    // of weights, which ranks gather
  double flops_per_s = 0;    // that products reach in bf16
  double bytes_per_s = 0;    // that casts read and write
};

/// Returns the seconds that fp8 adds to all layers' products with one micro-batch: those of casts, minus
/// those that products save. Negative: a gain; 0 without fp8. A product in fp8 is taken to need 1 / 1.7 of
/// its time in bf16, a cast to move 3 bytes an element, or 5 where the maxima of columns or of the whole
/// matrix are found first, and 2 less of each where the kernel that computes the element makes the cast or
/// finds the maxima; weights that are gathered as codes are read and written once, where they are transposed
/// (bench/results/planned_speed.md compares the sum with published speed-ups). The
/// copies that accumulate gradients of weights are not counted.
double fp8_added_s(const TrainConfig& config, const DecoderSpec& spec, const Fp8Calls& calls);

}  // namespace tycho
