// Where an export gets whole parameters from: a checkpoint, or adapters merged into the model they are for.
#pragma once
#include <functional>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/families/config.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/param_spec.h"

namespace tycho {

/// All elements of a parameter as fp32. Throws Error (kUnusable) for damaged bytes.
using ReadWeights = std::function<std::vector<float>(const ParamSpec&)>;

/// Those of a checkpoint, which outlives the result.
ReadWeights weights_of(const CheckpointReader& checkpoint);

/// Those of the model's own units with the checkpoint's adapters merged into their layers: W + scale B A, or
/// its transpose where matrices lie as [in, out]. The model is read from model.weights; the checkpoint
/// outlives the result. Throws Error (kUnusable) when that does not fit, or holds adapters itself.
ReadWeights merged_weights(const CheckpointReader& adapters, const ModelConfig& model);

/// Throws Error (kUnusable) that lists parameters of these units which a checkpoint does not have, or has in
/// another shape.
void check_weights(const CheckpointReader& checkpoint, const std::vector<UnitSpec>& units);

/// Throws Error (kUnusable) for a checkpoint of adapters, which is no model.
void require_model(const CheckpointReader& checkpoint);

}  // namespace tycho
