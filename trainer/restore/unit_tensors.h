// Between units and checkpoints: the names and bytes of weights and optimizer state.
#pragma once
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/optim/optimizer.h"
#include "trainer/units/flat_unit.h"

namespace tycho {

/// One flat buffer that a checkpoint holds: master weights (buffer "") or state of the optimizer ("exp_avg").
struct FlatState {
  std::string buffer;
  const FlatUnit* unit;
  Tensor flat;  // fp32; in a model that only generates, the parameters themselves
};

/// All flat buffers, weights first. `optimizer` may be null: weights only.
std::vector<FlatState> flat_states(std::vector<FlatUnit>& units, Optimizer* optimizer);

/// The parameters of a buffer by name, over its copy in host memory (fp32, same layout).
std::vector<TensorBytes> unit_tensor_bytes(const FlatState& state, const Tensor& host);

/// Weights are named as Hugging Face names them, state "optimizer.<buffer>.<name>".
std::string state_name(const std::string& buffer, const std::string& param);

/// Fills units, and optimizer unless null, from a checkpoint. Throws Error (kUnusable) that lists tensors
/// which are missing or have another shape.
void load_tensors(const CheckpointReader& reader, std::vector<FlatUnit>& units, Optimizer* optimizer);

}  // namespace tycho
