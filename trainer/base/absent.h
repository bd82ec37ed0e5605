// Names of what other systems have and Tycho does not, so that errors can say so.
#pragma once
#include <string>
#include <string_view>

namespace tycho {

/// Returns the sentence about a key or value of another system that Tycho does not have, such as
/// moe_num_experts, num_local_experts or torch_dmoe: "mixtures of experts are not supported". Returns "" for
/// any other name.
std::string absent_feature(std::string_view name);

}  // namespace tycho
