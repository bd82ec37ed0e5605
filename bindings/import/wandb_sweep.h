// Sweeps of Weights & Biases, which become sweeps of Tycho.
#pragma once
#include <string>

#include "bindings/import/document.h"
#include "bindings/import/imported.h"

namespace tycho {

/// Returns true for a file with a method, a program or a metric, and parameters.
bool is_wandb_sweep(const DocNode& root);

/// Returns the sweep as a file of Tycho; `stem` names a sweep without a name. Throws Error (kRecipe) with a
/// list of every key that has no counterpart here.
Imported import_wandb_sweep(const DocNode& root, const std::string& text, const std::string& file,
                            const std::string& stem);

}  // namespace tycho
