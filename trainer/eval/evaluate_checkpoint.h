// The loss of a checkpoint on data of the caller's choice.
#pragma once
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/eval/evaluate.h"

namespace tycho {

/// Sequences are as long as those that the checkpoint's recipe trains on, and `batches` are its global
/// batches; 0 takes the whole split. Nothing when `stop` is not 0 before the end. Throws Error: kUnusable
/// when the data is not there, does not fit the model or was made with another tokenizer; kNumerics when the
/// loss is not a number.
std::optional<EvalResult> evaluate_checkpoint(const CheckpointReader& checkpoint, const DataConfig& data,
                                              int64_t batches, const at::Device& device,
                                              const std::atomic<int>& stop);

}  // namespace tycho
