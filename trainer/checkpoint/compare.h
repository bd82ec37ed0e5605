// What differs between the tensors of two checkpoints. Torch-free.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"

namespace tycho {

/// A tensor that is not the same in both.
struct TensorDifference {
  std::string name;
  /// "F32 [2, 3]", empty where a checkpoint has no such tensor. Values are compared only when both are the
  /// same.
  std::string a, b;
  int64_t num_elements = 0, num_different = 0;
  /// The largest |a - b|, of F32, F64, F16 and BF16; nothing for other dtypes, and when one of two elements
  /// that differ is not finite.
  std::optional<double> max_difference;
};

struct TensorComparison {
  int64_t num_equal = 0;
  std::vector<TensorDifference> differences;  // in the order of `a`, then what only `b` has
};

/// Compares bits: 0 and -0 differ, and a NaN equals itself. Reads both block by block, in whichever files
/// their ranks wrote them. Throws Error (kUnusable) when a block is damaged.
TensorComparison compare_tensors(const CheckpointReader& a, const CheckpointReader& b);

}  // namespace tycho
