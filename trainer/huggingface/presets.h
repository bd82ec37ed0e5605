// Published sizes of the families: t.model.qwen3 { preset = "0.6b" }.
#pragma once
#include <string>
#include <vector>

#include "trainer/families/config.h"

namespace tycho {

/// Returns the names of the published sizes of a kind of model, smallest first within a generation; empty for
/// kinds that have none.
std::vector<std::string> preset_names(const std::string& kind);
/// Returns a model of a published size, which starts from random weights. Requires that the kind has this
/// preset.
ModelConfig preset_model(const std::string& kind, const std::string& name);

}  // namespace tycho
