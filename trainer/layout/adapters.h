// Which linear layers of a block have adapters, and the unit that these are. Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/families/lora_config.h"
#include "trainer/layout/param_spec.h"

namespace tycho {

/// A linear layer of a block.
struct LinearLayer {
  std::string name;                               // "model.layers.3.mlp.down_proj"
  int param = 0;                                  // its matrix, in the block's unit
  int64_t columns = 0, rows = 0;                  // inputs and outputs
  std::vector<TpCut::Section> in = {}, out = {};  // of them; one of the two is empty: every rank has all
  int64_t first_column = 0;  // of what a rank along tp has of `in`: its place in the whole
};

/// Where the layer's outputs are among the unit's views (UnitLayout::views).
struct LayerOutputs {
  int view = 0;
  int64_t first = 0;
};
LayerOutputs layer_outputs(const UnitSpec& block, const LinearLayer& layer);

/// Those of `layers` that the targets name: a pattern matches a name from one of its parts on to its end, so
/// that "q_proj", "mlp.up_proj" and "layers.[01]..*" do.
std::vector<LinearLayer> adapted_layers(const std::vector<LinearLayer>& layers, const LoraConfig& lora);

/// A and B of each layer, one after the other: "<layer>.lora_A.weight" [rank, columns] starts as peft's
/// (kaiming_uniform with a = sqrt 5: uniform within 1 / sqrt(columns)), "<layer>.lora_B.weight" [rows, rank]
/// as zeros. `unit`: the number of the block's.
UnitSpec adapter_unit(const std::string& block, int unit, const std::vector<LinearLayer>& adapted,
                      int64_t rank);

/// The pattern of a target, for names of layers.
std::string target_pattern(const std::string& target);

/// Units that are the model's own: embedding, blocks, head. Those after them are adapters.
size_t num_own_units(const std::vector<UnitSpec>& units);
/// Whether a unit is a block or its adapters: neither embedding nor head.
bool is_of_block(const std::vector<UnitSpec>& units, size_t unit);
/// The first unit that is trained, or that has trained adapters: backward ends there. The head when all are
/// frozen.
size_t lowest_trained_unit(const std::vector<UnitSpec>& units);

}  // namespace tycho
