// The matrices of a model, as what chooses their initial values sees them. Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/families/config.h"

namespace tycho {

/// A matrix that a model begins with. Norms and biases are none of these.
struct InitMatrix {
  std::string name;   // of the parameter
  std::string role;   // embedding, positions, head, q, k, v, qkv, out, gate, up, gate_up or down
  int64_t layer = 0;  // number of the block, from 1; 0 before the blocks, layers + 1 after them
  int64_t layers = 0;
  int64_t rows = 0, columns = 0;    // as it is stored
  int64_t fan_in = 0, fan_out = 0;  // inputs and outputs; a table's are its width and its rows
  bool residual = false;            // its product is added to the residual stream
};

/// Returns the matrices in forward order, without those of adapters.
std::vector<InitMatrix> init_matrices(const ModelConfig& model);

}  // namespace tycho
