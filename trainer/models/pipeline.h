// A training step of a model whose stages lie on several ranks: micro-batches pass through in the order of a
// schedule.
#pragma once
#include <memory>
#include <vector>

#include "trainer/kernels/tensor.h"
#include "trainer/layout/stages.h"
#include "trainer/models/model.h"
#include "trainer/models/pipeline_stage.h"
#include "trainer/parallel/communicator.h"
#include "trainer/parallel/unit_store.h"
#include "trainer/pipeline/program.h"
#include "trainer/pipeline/schedule.h"

namespace tycho {

/// Owned by the thread of the model.
class Pipeline {
 public:
  /// `model`, which outlives it, computes the part of `stage`.
  Pipeline(Model& model, const PipelineStage& stage, const PipelineShape& shape);

  /// As Model::forward_backward, for all micro-batches of a step, which are the same on all ranks along pp.
  /// Returns their summed losses, fp64, one element, on the stage with the head; zero on the others.
  /// Collective on the ranks along pp.
  Tensor forward_backward(const std::vector<MicroBatch>& micro_batches, const Tensor& weight_1);

 private:
  void send_or_receive(const PipelineOp& op, const PassPlace& place);

  Model& model_;
  PipelineStage stage_;
  StageProgram program_;
  StageSlots slots_;
};

/// The ranks that have a copy of a tied embedding each: those of the first stage and of the last one. Their
/// gradients are summed, so that the copies stay equal.
class TiedCopies {
 public:
  /// Collective on the ranks along pp. `tied`: whether there are copies.
  TiedCopies(const PipelineStage& stage, bool tied);
  /// After UnitStore::finish, before anything looks at gradients. Collective on the ranks along pp.
  void sum(UnitStore& units);

 private:
  std::unique_ptr<Communicator> both_;  // null on stages without a copy
};

}  // namespace tycho
