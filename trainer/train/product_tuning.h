// Algorithms of a run's products on GPUs that are chosen by timing.
#pragma once
#include <string>

#include "trainer/kernels/tensor.h"
#include "trainer/recipe/train_config.h"
#include "trainer/train/loop_context.h"

namespace tycho {

/// Rank 0 chooses for all ranks, and keeps what it chose on its machine, by GPU, version of the library, and
/// the keys of the recipe that decide the forms of products.
class ProductTuning {
 public:
  /// Takes the algorithms that rank 0 kept, where the recipe wants tuned products. Collective there. The
  /// context outlives it.
  ProductTuning(const TrainConfig& recipe, const LoopContext& context);

  /// Returns true if forms of a step must be timed before the first step counts.
  bool is_due() const { return is_due_; }
  /// Times the forms that any rank has met in a step, on rank 0 in memory that is idle between steps and gets
  /// overwritten, and takes the algorithms on every rank; the step must be computed again. Collective.
  void choose(Tensor& idle);

 private:
  const LoopContext& context_;
  std::string path_;  // on rank 0's machine; "" keeps nothing
  bool is_due_ = false;
};

}  // namespace tycho
