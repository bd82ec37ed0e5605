// Text from a trained model.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/eval/generation_state.h"
#include "trainer/eval/ordered_outputs.h"
#include "trainer/kernels/tensor.h"
#include "trainer/models/decoder.h"
#include "trainer/models/parallel_region.h"
#include "trainer/models/pipeline_stage.h"
#include "trainer/recipe/train_config.h"
#include "trainer/saving/trained_source.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {

struct PromptToContinue {
  std::vector<int32_t> tokens;
  int64_t sample = 0;  // number of the sample; each has its own random numbers
};

/// A model for generation, read from a checkpoint: its recipe, weights and tokenizer.
class Generator {
 public:
  /// `tokenizer` is the path of a tokenizer.json, "" for the checkpoint's own. Throws Error (kUnusable) when
  /// there is none. With `without_adapters`, uses the base model of a checkpoint of adapters; throws Error
  /// (kUsage) for another checkpoint.
  Generator(const TrainedSource& checkpoint, const std::string& tokenizer, const at::Device& device,
            bool without_adapters = false);
  /// Uses existing weights, such as those of an open run; `units` and `tokenizer` must outlive this object.
  /// Without a tokenizer, prompts are ids, no text is emitted, and generation continues to max_tokens.
  /// `region` and `stage` are the ranks along tp and pp that have the weights together and generate together.
  Generator(const TrainConfig& config, UnitStore& units, const Tokenizer* tokenizer, const at::Device& device,
            const ParallelRegion& region = {}, const PipelineStage& stage = {});

  /// Returns the tokens of a prompt. Throws Error (kUsage) when it has none, or leaves no space in the
  /// model's longest sequence.
  std::vector<int32_t> encode(const std::string& prompt) const;
  /// Throws Error (kUsage) for a prompt that is empty, leaves no space, or has ids outside the model's
  /// vocabulary.
  void check_prompt(const std::vector<int32_t>& ids) const;

  /// Continues a prompt and passes whole UTF-8 characters to `emit` as they are generated. The result is a
  /// function of (prompt, options, sample). Returns nullopt when `stop` is not 0 before the end.
  std::optional<Generated> generate(const PromptToContinue& prompt, const GenerateOptions& options,
                                    const std::function<void(const std::string&)>& emit,
                                    const std::atomic<int>& stop);
  /// Continues several prompts at the same time; `receiver` gets the texts in the prompts' order. Prompts do
  /// not affect each other, and on a CPU each text has, bit for bit, the probabilities that it has alone.
  /// Returns false when `stop` is not 0 before the end: the receiver then has the texts before that, and part
  /// of one.
  bool generate(const std::vector<PromptToContinue>& prompts, const GenerateOptions& options,
                TextReceiver& receiver, const std::atomic<int>& stop);

 private:
  TrainConfig config_;
  at::Device device_;
  std::unique_ptr<LocalUnits> own_units_;     // null when the caller's are used
  std::unique_ptr<Tokenizer> own_tokenizer_;  // null when the caller's is used
  UnitStore& units_;
  ParallelRegion region_;
  PipelineStage stage_;
  const Tokenizer* tokenizer_;  // null for none
};

/// Returns fp32 logits [1, V] on the device, after the last of these tokens (one or more), and what `look`
/// asks for in addition. Throws Error (kUsage) when there are more tokens than the model's longest sequence.
Tensor logits_of(const TrainConfig& config, UnitStore& units, const at::Device& device,
                 const std::vector<int32_t>& tokens, const DecoderLook& look = {},
                 const ParallelRegion& region = {}, const PipelineStage& stage = {});

}  // namespace tycho
