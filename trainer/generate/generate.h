// Text from a trained model.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/config/train_config.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/generate/texts_in_order.h"
#include "trainer/generate/written_text.h"
#include "trainer/kernels/tensor.h"
#include "trainer/models/decoder.h"
#include "trainer/models/parallel_region.h"
#include "trainer/models/pipeline_stage.h"
#include "trainer/parallel/unit_store.h"

namespace tycho {

struct PromptToContinue {
  std::vector<int32_t> tokens;
  int64_t sample = 0;  // each draws for itself
};

/// A model for generation, read from a checkpoint: its recipe, weights and tokenizer.
class Generator {
 public:
  /// `tokenizer` names a tokenizer.json, "" takes the checkpoint's own. Throws Error (kUnusable) when there
  /// is none. `without_adapters`: the model that a checkpoint of adapters is for; Error (kUsage) for another
  /// checkpoint.
  Generator(const CheckpointReader& checkpoint, const std::string& tokenizer, const at::Device& device,
            bool without_adapters = false);
  /// With existing weights, such as those of an open run; both outlive it. Without a tokenizer, prompts are
  /// ids, no text is emitted, and generation continues to max_tokens.
  /// `region` and `stage`: the ranks along tp and pp that have the weights together and make the text
  /// together.
  Generator(const TrainConfig& config, UnitStore& units, const Tokenizer* tokenizer, const at::Device& device,
            const ParallelRegion& region = {}, const PipelineStage& stage = {});

  /// The tokens of a prompt. Throws Error (kUsage) when they are none, or leave no room in the model's
  /// longest sequence.
  std::vector<int32_t> encode(const std::string& prompt) const;
  /// Throws Error (kUsage) for a prompt that is empty, leaves no room, or has ids that the model does not
  /// have.
  void check_prompt(const std::vector<int32_t>& ids) const;

  /// Goes on from a prompt's tokens and hands whole UTF-8 characters to `emit` as they come. A function of
  /// (prompt, options, sample). Nothing when `stop` is not 0 before the end.
  std::optional<Generated> generate(const PromptToContinue& prompt, const GenerateOptions& options,
                                    const std::function<void(const std::string&)>& emit,
                                    const std::atomic<int>& stop);
  /// The same for several prompts, which grow side by side; `receiver` gets them in their order. Prompts do
  /// not see each other, and on a CPU each text has, to the bit, the probabilities that it has alone. False
  /// when `stop` is not 0 before the end: the receiver has the texts before that, and part of one.
  bool generate(const std::vector<PromptToContinue>& prompts, const GenerateOptions& options,
                TextReceiver& receiver, const std::atomic<int>& stop);

 private:
  TrainConfig config_;
  at::Device device_;
  std::unique_ptr<LocalUnits> own_units_;     // none when they are another's
  std::unique_ptr<Tokenizer> own_tokenizer_;  // likewise
  UnitStore& units_;
  ParallelRegion region_;
  PipelineStage stage_;
  const Tokenizer* tokenizer_;  // null: none
};

/// fp32 logits [1, V] on the device, after the last of these tokens, one or more; what `look` asks for beside
/// that. Throws Error (kUsage) when they are more than the model's longest sequence.
Tensor logits_of(const TrainConfig& config, UnitStore& units, const at::Device& device,
                 const std::vector<int32_t>& tokens, const DecoderLook& look = {},
                 const ParallelRegion& region = {}, const PipelineStage& stage = {});

}  // namespace tycho
