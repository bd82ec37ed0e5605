// Changes to the proportions in which the streams of a data set are mixed.
#pragma once
#include <map>
#include <string>

#include "trainer/base/json.h"
#include "trainer/data/config.h"

namespace tycho {

/// Proportions of streams, by name.
using Mix = std::map<std::string, double>;

/// The data with these proportions instead of its own; of all its streams, or none to leave them as they are.
/// Throws Error (kRecipe) when its streams have other names.
DataConfig with_mix(DataConfig data, const Mix& mix);

/// The proportions of all streams of `data` when `wanted` sets those of some ({"code": 0.2}): as shares of
/// the whole, and the others divide what is left as they did before. Throws Error (kRecipe) that says what
/// does not fit.
Mix changed_mix(const DataConfig& data, const Json& wanted);

}  // namespace tycho
