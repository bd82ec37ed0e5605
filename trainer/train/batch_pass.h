// The forward and backward pass of a whole batch, as micro-batches, on one pipeline stage or through several.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "trainer/base/json.h"
#include "trainer/data/rows/batch.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/model_layout.h"
#include "trainer/models/model.h"
#include "trainer/models/parallel_region.h"
#include "trainer/models/pipeline.h"
#include "trainer/models/pipeline_stage.h"
#include "trainer/models/token_loss.h"
#include "trainer/recipe/parallel.h"
#include "trainer/recipe/train_config.h"
#include "trainer/sharding/unit_store.h"
#include "trainer/train/loop_context.h"

namespace tycho {

/// Points of a pass that may be observed; a function that is empty is not called.
struct BatchObservers {
  /// Called between forward and backward of the last micro-batch with the residual stream before each block
  /// and after the last one: [{"rms": 0.02, "max": 0.1}, ...], with {} for those of other stages.
  std::function<void(Json streams)> after_forward = {};
  /// Called for every micro-batch where the head is, with the losses of its tokens.
  std::function<void(const TokenLosses&)> after_losses = {};
};

/// Sums over the tokens of all ranks that have a target; token_weight times a sum is the mean.
struct BatchSums {
  Tensor losses_R;  // fp64, on the device: cross-entropies, and each term of the recipe's loss
  float token_weight = 0;
};

/// The part of the model that this rank trains, and how it computes a batch. Owned by one thread;
/// asynchronous on CUDA.
class BatchPass {
 public:
  /// Takes the memory of parameters, gradients and activations. Collective. The recipe and the context
  /// outlive it.
  BatchPass(const TrainConfig& recipe, const LoopContext& context);

  /// Computes the gradients of the mean loss, weighted where tokens have weights, over the valid tokens of
  /// all ranks into units(), and returns the sums. `steps_done`: before this one; dropout depends on it.
  /// Collective.
  BatchSums run(const Batch& batch, int64_t steps_done, const BatchObservers& observers = {});

  UnitStore& units() { return *units_; }
  Model& model() { return model_; }
  const TokenLoss& loss() const { return model_.loss(); }
  const ModelLayout& layout() const { return model_.layout(); }
  /// Ranks along tp, as a model of units() needs them.
  ParallelRegion region() const;
  /// Returns the part of the model in units(), and the ranks along pp with the other parts.
  const PipelineStage& stage() const { return stage_; }

 private:
  /// Adds up the gradients of this rank's micro-batches; returns the summed losses of each, zeros on stages
  /// without the head.
  Tensor accumulate(const Batch& batch, float weight, int64_t steps_done, const BatchObservers& observers);
  MicroBatch micro_batch(const MicroBatch& whole, BatchShape shape, int64_t first_sequence,
                         int64_t num_sequences, int64_t steps_done) const;
  /// Returns the sums over all ranks, given the losses of this rank's micro-batches.
  Tensor summed(const Tensor& losses_MR);
  bool is_canonical() const { return recipe_.parallel.reduce == GradientOrder::kCanonical; }

  const TrainConfig& recipe_;
  const LoopContext& context_;
  PipelineStage stage_;
  BatchShape shape_;  // of micro-batches of untrimmed rows
  std::unique_ptr<UnitStore> units_;
  Model model_;
  std::optional<Pipeline> pipeline_;  // set with several stages
  TiedCopies tied_;
};

}  // namespace tycho
