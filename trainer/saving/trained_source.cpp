// A folder of Hugging Face is read as an import of it would be, without writing a checkpoint.
#include "trainer/saving/trained_source.h"

#include "trainer/base/error.h"
#include "trainer/base/precision.h"
#include "trainer/hub/hub_files.h"
#include "trainer/huggingface/hf_config.h"
#include "trainer/huggingface/hf_folder.h"
#include "trainer/huggingface/hf_import.h"
#include "trainer/huggingface/hf_tokenizer.h"
#include "trainer/recipe/config_io.h"
#include "trainer/saving/initial_weights.h"

namespace tycho {

TrainedSource::TrainedSource(const CheckpointInfo& checkpoint, bool ema)
    : info_(checkpoint),
      checkpoint_(std::make_unique<CheckpointReader>(info_, evaluated_weights(info_, ema))) {}

TrainedSource::TrainedSource(const std::string& path, const at::Device& device, bool ema) {
  if (!is_hf_folder(path)) {
    *this = TrainedSource(find_checkpoint(path), ema);
    return;
  }
  if (ema)
    fail(ExitCode::kUsage, "[ema] --ema expected a run with an average of its weights, got {}: leave it out",
         path);
  info_.path = pinned_name(path);
  files_ = read_kept_hf_files(info_.path);
  const HfConfig read =
      read_hf_config(read_hf_config_file(info_.path), info_.path + "/config.json", HfStart::kItsWeights);
  TrainConfig config = imported_recipe(read.model, path);
  config.precision = device.is_cpu() ? Precision::kFp32 : Precision::kBf16;
  info_.manifest = {{"recipe", config_to_json(config)}};
}

bool TrainedSource::has_file(const std::string& name) const {
  return checkpoint_ ? checkpoint_->has_file(name) : files_.contains(name);
}

std::string TrainedSource::read_text_file(const std::string& name) const {
  return checkpoint_ ? checkpoint_->read_text_file(name) : files_.at(name);
}

std::vector<int32_t> TrainedSource::end_of_text_ids() const {
  if (!has_file(kGenerationConfig)) return {};
  return tycho::end_of_text_ids(read_text_file(kGenerationConfig), info_.path + "/" + kGenerationConfig);
}

void TrainedSource::load(const ModelConfig& model, const std::vector<OwnedRange>& ranges) const {
  if (checkpoint_) return load_trained(*checkpoint_, model, ranges);
  load_initial_weights(info_.path, model, ranges);
}

}  // namespace tycho
