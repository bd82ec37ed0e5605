// The weights that a run starts from if its recipe names any: Hugging Face's, or another run's.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/families/config.h"
#include "trainer/sharding/owned_range.h"

namespace tycho {

/// Returns model.weights of any family; "" for new weights.
const std::string& initial_weights_path(const ModelConfig& model);

/// Fills this rank's part of `model`, without its adapters, from a folder of Hugging Face, a run or a
/// checkpoint. Reads no optimizer state. Throws Error (kUnusable) that lists what does not fit, before
/// anything is filled. See load_tensors for `between`.
void load_initial_weights(const std::string& path, const ModelConfig& model,
                          const std::vector<OwnedRange>& ranges, const std::function<void()>& between = {});

/// Loads the base weights of a model with adapters from model.weights. Does nothing for other models, whose
/// checkpoints hold all weights. Throws Error (kUnusable) when the weights are missing or do not fit.
void load_base(const ModelConfig& model, const std::vector<OwnedRange>& ranges,
               const std::function<void()>& between = {});

/// Loads this rank's part of a trained model: the checkpoint's tensors, over the base weights if they are
/// adapters. Throws Error (kUnusable) like check_fit, load_base and load_tensors.
void load_trained(const CheckpointReader& checkpoint, const ModelConfig& model,
                  const std::vector<OwnedRange>& ranges);

/// Returns the tokenizer's files and config.json beside those weights, which a run keeps with its
/// checkpoints.
std::map<std::string, std::string> files_beside_weights(const std::string& path);

}  // namespace tycho
