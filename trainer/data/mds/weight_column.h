// A column of an MDS data set that holds weights of targets.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tycho {

/// Fills `weights` with those of the tokens [first, first + size) of a sample of `count` tokens. The column
/// has a number for each token (ndarray of float32, float64 or integers), or one for all (float32, float64,
/// int). Throws Error (kUnusable) that names `place` for other encodings, another number of weights, and
/// weights that target_weight refuses.
void read_weights(std::string_view encoding, std::string_view value, int64_t count, int64_t first,
                  std::span<float> weights, bool marks, const std::string& place);

}  // namespace tycho
