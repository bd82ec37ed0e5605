// Text from a trained model.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/config.h"
#include "trainer/data/tokenizer.h"
#include "trainer/eval/sampling.h"
#include "trainer/models/model.h"

namespace tycho {

/// A model that generates, read from a checkpoint: its recipe, weights and tokenizer.
class Generator {
 public:
  /// `tokenizer` names a tokenizer.json, "" takes the checkpoint's own. Throws Error (kUnusable) when there
  /// is none.
  Generator(const CheckpointReader& checkpoint, const std::string& tokenizer, const at::Device& device);

  /// Continues `prompt` (at least one token) and hands whole UTF-8 characters to `emit` as they come. Ends
  /// after max_tokens, at a special token, at the model's longest sequence, or when `stop` is not 0.
  void generate(const std::string& prompt, const SamplingConfig& sampling, int64_t max_tokens, uint64_t seed,
                const std::function<void(const std::string&)>& emit, const std::atomic<int>& stop);

 private:
  TrainConfig config_;
  at::Device device_;
  LocalUnits units_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

}  // namespace tycho
