// The loss of a checkpoint on data of the caller's choice.
#pragma once
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/data/config.h"
#include "trainer/eval/evaluate.h"
#include "trainer/eval/result.h"

namespace tycho {

/// Over `data`, whose result has the name "", or over the sets that the checkpoint's recipe evaluates on.
/// Sequences are as long as those that this recipe trains on, and `batches` are its global batches; 0 takes
/// everything, none as much as the run took of its own sets. Nothing when `stop` is not 0 before the end.
/// Throws Error: kUsage without data when the recipe evaluates nothing; kUnusable when the data is not there,
/// does not fit the model or was made with another tokenizer.
std::optional<EvalResults> evaluate_checkpoint(const CheckpointReader& checkpoint,
                                               const std::optional<DataConfig>& data,
                                               std::optional<int64_t> batches, const at::Device& device,
                                               const std::atomic<int>& stop);

}  // namespace tycho
