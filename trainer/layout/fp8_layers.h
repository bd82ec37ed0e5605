// Chooses the linear layers of a model that multiply in fp8. Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/families/decoder_spec.h"
#include "trainer/families/fp8_config.h"
#include "trainer/families/recompute_config.h"
#include "trainer/layout/adapters.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/param_spec.h"

namespace tycho {

/// Linear layers that are multiplied together, in fp8: a view of their block's unit.
struct Fp8Product {
  int view = -1;
  int factors = -1;              // view of the factors of the weight's rows, where the weight is codes
  std::vector<int64_t> outputs;  // of each layer; each has scales of its own
  int64_t inputs = 0;
  Fp8Recipe recipe = Fp8Recipe::kNone;
  bool cuts_inputs = false;                // a rank along tp has a part of the inputs; false: of the outputs
  bool cast_along = false;                 // the norm or activation that computes the inputs can cast them
  Recompute recompute = Recompute::kFull;  // least mode whose backward multiplies again; kNone: no mode does

  int64_t all_outputs() const;
};
/// Linear layers that stay bf16.
struct Bf16Layers {
  std::vector<std::string> names;
  std::string reason;
  bool named_in_part = false;  // fp8.skip names some of them, but they are one product
};
struct Fp8Layers {
  std::vector<Fp8Product> products;
  std::vector<Bf16Layers> kept;
};

/// Returns the choice for the layers of a block, or an empty one without fp8.
Fp8Layers fp8_layers(const UnitSpec& block, const std::vector<LinearLayer>& layers, const Fp8Config& fp8);

/// Returns what is wrong with the choice for a model that `tp` ranks share: words of fp8.skip that name
/// nothing, or a part of a product; no layer left; parts of ranks that differ, or that a GPU cannot multiply.
std::vector<ConfigProblem> fp8_problems(const DecoderSpec& spec, int64_t tp);
/// Returns a config that chooses the same layers by their names alone: a rank's part of a layer is smaller.
Fp8Config named_fp8(const DecoderSpec& whole);
/// Returns a sentence on the layers of a model that multiply in fp8, and those that do not; "" without fp8.
std::string fp8_text(const DecoderSpec& spec);
/// Returns the bytes that the products of one layer take while they are computed, at most.
int64_t fp8_bytes(const DecoderSpec& spec, BatchShape shape, bool on_gpu);

}  // namespace tycho
