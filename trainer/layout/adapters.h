// Chooses the linear layers of a block that have adapters, and makes the unit of these. Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/families/lora_config.h"
#include "trainer/families/recompute_config.h"
#include "trainer/layout/param_spec.h"

namespace tycho {

/// Linear layer of a block.
struct LinearLayer {
  std::string name;                               // "model.layers.3.mlp.down_proj"
  int param = 0;                                  // index of its matrix in the block's unit
  int64_t columns = 0, rows = 0;                  // inputs and outputs
  std::vector<TpCut::Section> in = {}, out = {};  // sections of columns and of rows; one of the two is empty:
                                                  // every rank has all of that dim
  int64_t first_column = 0;                // first of the whole layer's inputs that a rank along tp has
  Recompute recompute = Recompute::kFull;  // least mode whose backward multiplies again; kNone: no mode does
};

/// Position of a layer's outputs among the unit's views (UnitLayout::views).
struct LayerOutputs {
  int view = 0;
  int64_t first = 0;
};
LayerOutputs layer_outputs(const UnitSpec& block, const LinearLayer& layer);

/// Returns the layers that the targets name. A pattern matches a name from the begin of one of its parts to
/// its end, so that "q_proj", "mlp.up_proj" and "layers.[01]..*" are patterns.
std::vector<LinearLayer> adapted_layers(const std::vector<LinearLayer>& layers, const LoraConfig& lora);

/// Returns the unit with A and B of each layer, one after the other: "<layer>.lora_A.weight" [rank, columns]
/// starts as in peft (kaiming_uniform with a = sqrt 5: uniform within 1 / sqrt(columns)),
/// "<layer>.lora_B.weight" [rows, rank] as zeros. `unit`: number of the block's unit.
UnitSpec adapter_unit(const std::string& block, int unit, const std::vector<LinearLayer>& adapted,
                      int64_t rank);

/// Returns the pattern that a target stands for, for names of layers.
std::string target_pattern(const std::string& target);

/// Returns the number of units that are the model's own: embedding, blocks, head. Later units are adapters.
size_t num_own_units(const std::vector<UnitSpec>& units);
/// True if a unit is a block or its adapters: neither embedding nor head.
bool is_of_block(const std::vector<UnitSpec>& units, size_t unit);
/// Returns the first unit that is trained, or that has trained adapters: backward ends there. Returns the
/// head when all are frozen.
size_t lowest_trained_unit(const std::vector<UnitSpec>& units);

}  // namespace tycho
