// The model of a checkpoint, for inference on one rank.
#pragma once
#include <memory>

#include "trainer/comm/communicator.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/eval/scorer.h"
#include "trainer/recipe/train_config.h"
#include "trainer/saving/trained_source.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {

class TrainedModel {
 public:
  /// Reads the weights, adapters included. Throws Error (kUnusable) for a damaged checkpoint.
  TrainedModel(const TrainedSource& checkpoint, const at::Device& device);

  const TrainConfig& config() const { return config_; }
  /// Returns the checkpoint's tokenizer; null when the model was trained without one.
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }
  int64_t vocab_size() const { return config_.model.vocab_size(); }
  /// Returns the model for inference. This object must outlive it.
  AskedModel asked();

 private:
  TrainConfig config_;
  at::Device device_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  LocalUnits units_;
  std::unique_ptr<Communicator> world_;
};

}  // namespace tycho
