// Changes to the proportions in which the streams of a data set are mixed.
#pragma once
#include <map>
#include <string>

#include "trainer/base/json.h"
#include "trainer/recipe/data.h"

namespace tycho {

/// Maps the name of a stream to its proportion.
using Mix = std::map<std::string, double>;

/// Returns `data` with the proportions of `mix`, which names all streams; an empty mix changes nothing.
/// Throws Error (kRecipe) when the streams have other names.
DataConfig with_mix(DataConfig data, const Mix& mix);

/// Returns the proportions of all streams of `data` after `wanted` has set some of them ({"code": 0.2}).
/// Proportions are shares of the whole; the other streams divide the rest in their old ratio. Throws Error
/// (kRecipe) that says what does not fit.
Mix changed_mix(const DataConfig& data, const Json& wanted);

}  // namespace tycho
