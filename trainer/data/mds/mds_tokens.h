// Tokens of a sample, for all integer types in which they can be stored.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

/// Returns the ids in a value of a column of this encoding: an array of int32, int64, uint16 or uint32, or
/// "bytes" of int64. Throws Error (kUnusable) "PLACE ..." for anything else, and for ids below 0 or above
/// 2^31 - 1.
std::vector<int32_t> mds_tokens(std::string_view encoding, std::string_view value, const std::string& place);

}  // namespace tycho
