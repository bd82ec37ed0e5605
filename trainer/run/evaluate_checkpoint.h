// The loss of a checkpoint on data of the caller's choice.
#pragma once
#include "trainer/eval/evaluate.h"
#include "trainer/recipe/data.h"
#include "trainer/saving/trained_source.h"
#include "trainer/session/eval_result.h"

namespace tycho {

/// Evaluates `data`, whose result has the name "", or the sets of the checkpoint's recipe. Sequences have the
/// recipe's training length, and `batches` counts its global batches: 0 is everything, nullopt as many as the
/// run used for its own sets. Returns nullopt when `stop` is not 0 before the end. Throws Error: kUsage
/// without data when the recipe evaluates nothing; kUnusable when the data is missing, does not fit the model
/// or was made with another tokenizer.
std::optional<EvalResults> evaluate_checkpoint(const TrainedSource& checkpoint,
                                               const std::optional<DataConfig>& data,
                                               std::optional<int64_t> batches, const at::Device& device,
                                               const std::atomic<int>& stop);

}  // namespace tycho
