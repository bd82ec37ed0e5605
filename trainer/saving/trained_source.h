// A trained model in either form that verbs take: a checkpoint, or a folder of Hugging Face, here or on the
// hub.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/families/config.h"
#include "trainer/kernels/tensor.h"
#include "trainer/sharding/owned_range.h"

namespace tycho {

/// Recipe, small files and weights of a trained model. Used by one thread at a time.
class TrainedSource {
 public:
  /// Opens a run, a checkpoint, a folder of Hugging Face or hf://OWNER/NAME, whose small files are fetched.
  /// A folder of Hugging Face has the recipe that an import gives it (imported_recipe), and computes in fp32
  /// on a CPU, else in bf16. Throws Error: kUnusable for what cannot be read, kUsage for `ema` without an
  /// average of the weights.
  explicit TrainedSource(const std::string& path, const at::Device& device = at::kCPU, bool ema = false);
  explicit TrainedSource(const CheckpointInfo& checkpoint, bool ema = false);

  /// Returns path, step and manifest, in which a folder of Hugging Face has only its recipe. The path of a
  /// model of the hub names its commit.
  const CheckpointInfo& info() const { return info_; }
  bool has_file(const std::string& name) const;
  std::string read_text_file(const std::string& name) const;
  /// Returns the tokens that end a text by the model's generation_config.json.
  std::vector<int32_t> end_of_text_ids() const;
  /// Loads this rank's part of `model`; see load_trained() and load_initial_weights().
  void load(const ModelConfig& model, const std::vector<OwnedRange>& ranges) const;

 private:
  CheckpointInfo info_;
  std::unique_ptr<CheckpointReader> checkpoint_;  // null for a folder of Hugging Face
  std::map<std::string, std::string> files_;      // of that folder
};

}  // namespace tycho
