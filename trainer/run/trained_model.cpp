// Takes the recipe, the weights and the tokenizer that a checkpoint keeps.
#include "trainer/run/trained_model.h"

#include "trainer/recipe/config_io.h"

namespace tycho {
TrainedModel::TrainedModel(const TrainedSource& checkpoint, const at::Device& device)
    : config_(read_trained_config(checkpoint.info().manifest.at("recipe"), TrainedUse::kModel,
                                  checkpoint.info().path)),
      device_(device),
      tokenizer_(open_kept_tokenizer(checkpoint)),
      units_(model_layout(config_.model).units, compute_dtype(config_.precision), device, UnitUse::kInfer),
      world_(make_world_of_one()) {
  checkpoint.load(config_.model, units_.owned());
}

AskedModel TrainedModel::asked() {
  return {.model = config_.model,
          .units = units_,
          .dtype = compute_dtype(config_.precision),
          .device = device_,
          .region = {},
          .stage = {},
          .data_ranks = *world_,
          .world = *world_,
          .batch_tokens = micro_batch_sequences(config_) * config_.seq_len};
}

}  // namespace tycho
