// Compares the tensors of two checkpoints. Torch-free.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"

namespace tycho {

/// A tensor that differs between two checkpoints.
struct TensorDifference {
  std::string name;
  /// "F32 [2, 3]", or "" where a checkpoint lacks the tensor. Values are compared only when both agree.
  std::string a, b;
  int64_t num_elements = 0, num_different = 0;
  /// The largest |a - b|, for F32, F64, F16 and BF16. nullopt for other dtypes, and when an element that
  /// differs is not finite.
  std::optional<double> max_difference;
};

struct TensorComparison {
  int64_t num_equal = 0;
  std::vector<TensorDifference> differences;  // in the order of `a`, followed by those that only `b` has
};

/// Compares bits: 0 and -0 differ, and a NaN equals itself. Reads both block by block, whatever files the
/// ranks wrote. Throws Error (kUnusable) when a block is damaged.
TensorComparison compare_tensors(const CheckpointReader& a, const CheckpointReader& b);

}  // namespace tycho
