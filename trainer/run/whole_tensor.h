// A parameter, its gradient, or its optimizer's state, on every rank, from those that have parts of it, for a
// look at it.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "trainer/kernels/tensor.h"
#include "trainer/models/parallel_region.h"
#include "trainer/models/pipeline_stage.h"
#include "trainer/optim/optimizer.h"
#include "trainer/recipe/train_config.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {

/// The ranks that hold a model together, and this rank's part; all of it must outlive this object. Methods
/// are collective on the region's ranks, the store's, and those along pp.
class WholeTensors {
 public:
  WholeTensors(const TrainConfig& config, UnitStore& units, const ParallelRegion& region,
               const PipelineStage& stage)
      : config_(config), units_(units), region_(region), stage_(stage) {}

  /// Return parameter i of a unit, and its gradient after UnitStore::finish, undefined when it is frozen: the
  /// store's own tensor when this rank has the whole model, else a copy.
  Tensor param(size_t unit, size_t i) const;
  Tensor grad(size_t unit, size_t i) const;
  /// Returns a copy of the parameter's `state` of this name, fp32. Zeros when no rank has any.
  Tensor moment(size_t unit, size_t i, const std::string& name, const std::vector<StateBuffer>& state) const;

 private:
  /// Returns on all stages the result of `read` on the stage that has the unit.
  Tensor of_stage(size_t unit, size_t i, at::ScalarType dtype, const std::function<Tensor()>& read) const;

  const TrainConfig& config_;
  UnitStore& units_;
  const ParallelRegion region_;
  const PipelineStage& stage_;
};

}  // namespace tycho
