// Counts come from the layout and the size of the data: no tensor exists yet.
#include "trainer/run/describe_run.h"

#include "trainer/data/loader/open_rows.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/device/device.h"
#include "trainer/huggingface/hf_tokenizer.h"
#include "trainer/layout/model_layout.h"
#include "trainer/metrics/device_peak.h"
#include "trainer/recipe/config_io.h"
#include "trainer/saving/initial_weights.h"
#include "trainer/train/run_length.h"

namespace tycho {

RunInfo describe_run(const TrainConfig& config, const RunRequest& request, const at::Device& device,
                     const std::string& run_dir, const OpenedData& opened) {
  const ModelLayout layout = model_layout(config.model);
  RunInfo info;
  info.run_name = config.run_name;
  info.run_dir = run_dir;
  info.device = device_name(device);
  info.precision = config.precision == Precision::kBf16 ? "bf16" : "fp32";
  info.recipe_hash = request.recipe_hash;
  info.pins = request.pins;
  info.show = config.log.show;
  info.optimizer = config.optimizer.kind();
  info.num_samples = count_samples(config.train_data, row_shape(config), opened,
                                   {.global_sequences = global_batch_sequences(config),
                                    .num_ranks = request.place.num_ranks,
                                    .num_nodes = request.place.num_nodes(),
                                    .seed = static_cast<uint64_t>(config.seed)});
  set_length(info, config, request.until, {});
  info.num_params = layout.num_params();
  info.device_memory_bytes = device_memory_bytes(device);
  info.flops_per_token_full = layout.flops_per_token_full(config.seq_len);
  info.flops_per_token_causal = layout.flops_per_token_causal(config.seq_len);
  info.num_ranks = request.place.num_ranks;
  info.peak_flops = device_peak_flops(info.device, config.precision);
  if (info.peak_flops) *info.peak_flops *= static_cast<double>(info.num_ranks);
  return info;
}

CheckpointMeta describe_checkpoints(const TrainConfig& config, const RunRequest& request,
                                    const at::Device& device, const MeshShape& mesh,
                                    const std::string& tokenizer) {
  CheckpointMeta meta{.recipe = config_to_json(config),
                      .recipe_hash = request.recipe_hash,
                      .route = compute_route(device, config.precision),
                      .world = mesh_json(mesh)};
  if (const std::string& weights = initial_weights_path(config.model); !weights.empty())
    meta.files = files_beside_weights(weights);
  if (!tokenizer.empty()) {
    keep_tokenizer(tokenizer, read_files_beside_tokenizer(config.tokenizer), meta.files);
  }
  return meta;
}

}  // namespace tycho
