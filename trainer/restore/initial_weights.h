// The weights that a run starts from if its recipe names any: Hugging Face's, or another run's.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/families/config.h"
#include "trainer/units/owned_range.h"

namespace tycho {

/// model.weights of any family; "" for new ones.
const std::string& initial_weights_path(const ModelConfig& model);

/// Fills what this rank owns of `model`, without its adapters, from a folder of Hugging Face, a run or a
/// checkpoint; no optimizer state is read. Throws Error (kUnusable) that lists what does not fit, before
/// anything is filled. `between`: as in load_tensors.
void load_initial_weights(const std::string& path, const ModelConfig& model,
                          const std::vector<OwnedRange>& ranges, const std::function<void()>& between = {});

/// The weights that a model with adapters was made for, from model.weights; nothing for other models, whose
/// checkpoints hold them. Throws Error (kUnusable) when they are not there or do not fit.
void load_base(const ModelConfig& model, const std::vector<OwnedRange>& ranges,
               const std::function<void()>& between = {});

/// What this rank owns of a trained model: the checkpoint's tensors, over the base if they are adapters.
/// Throws Error (kUnusable) as check_fit, load_base and load_tensors do.
void load_trained(const CheckpointReader& checkpoint, const ModelConfig& model,
                  const std::vector<OwnedRange>& ranges);

/// The tokenizer's files and config.json that lie beside those weights: a run keeps them with its
/// checkpoints.
std::map<std::string, std::string> files_beside_weights(const std::string& path);

}  // namespace tycho
