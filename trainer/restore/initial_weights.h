// The weights that a run starts from when its recipe names some: of Hugging Face, or of another run.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trainer/families/config.h"
#include "trainer/units/owned_range.h"

namespace tycho {

/// model.weights of any family; "" for new ones.
const std::string& initial_weights_path(const ModelConfig& model);

/// Fills what this rank owns of `model` from a folder of Hugging Face, a run or a checkpoint; no optimizer
/// state is read. Throws Error (kUnusable) that lists what does not fit, before anything is filled.
/// `between`: as
/// in load_tensors.
void load_initial_weights(const std::string& path, const ModelConfig& model,
                          const std::vector<OwnedRange>& ranges, const std::function<void()>& between = {});

/// The tokenizer's files and config.json that lie beside those weights: a run keeps them with its
/// checkpoints.
std::map<std::string, std::string> files_beside_weights(const std::string& path);

}  // namespace tycho
