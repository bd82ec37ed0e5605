// Reads whole parameters for an export: from a checkpoint, or from adapters merged into their base model.
#pragma once
#include <functional>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/families/config.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/param_spec.h"

namespace tycho {

/// Returns all elements of a parameter as fp32. Throws Error (kUnusable) for damaged bytes.
using ReadWeights = std::function<std::vector<float>(const ParamSpec&)>;

/// Returns a reader for a checkpoint, which must outlive it.
ReadWeights weights_of(const CheckpointReader& checkpoint);

/// Returns a reader for the model's own units with the checkpoint's adapters merged into their layers: W +
/// scale B A, or its transpose when matrices are stored as [in, out]. Reads the model from model.weights; the
/// checkpoint must outlive the result. Throws Error (kUnusable) when the model does not fit, or holds
/// adapters itself.
ReadWeights merged_weights(const CheckpointReader& adapters, const ModelConfig& model);

/// Throws Error (kUnusable) that lists parameters of these units that a checkpoint lacks, or has in another
/// shape.
void check_weights(const CheckpointReader& checkpoint, const std::vector<UnitSpec>& units);

/// Throws Error (kUnusable) for a checkpoint of adapters, which is no model.
void require_model(const CheckpointReader& checkpoint);

}  // namespace tycho
