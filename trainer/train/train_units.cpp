// Cuts the model along tp first; ranks along the other axes share what is left.
#include "trainer/train/train_units.h"

#include <optional>
#include <variant>

#include "trainer/layout/param_rules.h"
#include "trainer/layout/shard_rules.h"
#include "trainer/layout/stages.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/saving/initial_weights.h"
#include "trainer/sharding/init.h"

namespace tycho {
namespace {

UnitUse training_use(MasterWeights master) {
  switch (master) {
    case MasterWeights::kFp32: return UnitUse::kTrain;
    case MasterWeights::kNone: return UnitUse::kTrainInPlace;
    case MasterWeights::kStochastic: return UnitUse::kTrainStochastic;
  }
  return UnitUse::kTrain;
}

}  // namespace

ParallelRegion parallel_region(const TrainConfig& config, const Mesh& mesh) {
  return {mesh.group(Axis::kTp), config.parallel.sequence_parallel,
          ContextRegion(mesh.context(), config.seq_len, config.parallel.cp_attention == CpAttention::kRing)};
}

PipelineStage pp_stage(const TrainConfig& config, const Mesh& mesh) {
  const int64_t micro_batches = micro_batches_per_step(config, mesh.shape().size(kDataAxes));
  return {stage_part(config, mesh.coordinate(Axis::kPp), micro_batches), mesh.group(Axis::kPp)};
}

BatchShape micro_batch_shape(const TrainConfig& config, const Mesh& mesh) {
  return {micro_batch_sequences(config, mesh.group(kDataAxes).size()), config.seq_len};
}

std::unique_ptr<UnitStore> make_train_units(const TrainConfig& config, const Mesh& mesh,
                                            const at::Device& device) {
  const ModelLayout layout = model_layout(config.model);
  const ParamRules rules = param_rules(config.optimizer, config.param_groups, layout.units);
  const StagePart part = pp_stage(config, mesh).part(layout.num_blocks);
  return make_unit_store(stage_units(tp_units(with_frozen(layout.units, rules),
                                              parallel_region(config, mesh).shape(), device.is_cuda()),
                                     part, layout.tied),
                         compute_dtype(config.precision), device, training_use(config.master_weights),
                         shard_rules(config.parallel, layout, mesh.shape().num_ranks(),
                                     micro_batches_per_step(config, mesh.shape().size(kDataAxes))),
                         {[&mesh](const UnitSpec&) -> UnitGroup {
                            return {mesh.group(kShardAxes), mesh.group(Axis::kDpReplicate)};
                          },
                          &mesh.group(Axis::kTp), &mesh.context()});
}

void take_first_weights(const TrainConfig& config, UnitStore& units, const std::function<void()>& between) {
  const std::string& path = initial_weights_path(config.model);
  const auto* defined = std::get_if<DefinedInitConfig>(&config.init.value);
  std::optional<DefinedInit> own;
  if (defined) own.emplace(*defined, config.model);
  if (!path.empty()) load_initial_weights(path, config.model, units.owned(), between);
  for (const OwnedRange& range : units.owned()) {
    if (!path.empty() && range.layout.spec().adapts < 0) continue;  // read above
    between();
    initialise(range, static_cast<uint64_t>(config.seed), own ? &*own : nullptr);
  }
}

}  // namespace tycho
