// In-context evaluation of a checkpoint.
#pragma once
#include <atomic>
#include <optional>

#include "trainer/kernels/tensor.h"
#include "trainer/recipe/icl.h"
#include "trainer/saving/trained_source.h"
#include "trainer/tasks/result.h"

namespace tycho {

/// Evaluates the tasks with the checkpoint's own tokenizer; prompts are as long as its model takes. Returns
/// nullopt when `stop` is not 0 before the end. Throws Error: kUsage for a checkpoint without a tokenizer,
/// and like icl_questions and score.
std::optional<IclResults> measure_icl(const TrainedSource& checkpoint, const IclConfig& config,
                                      const at::Device& device, const std::atomic<int>& stop);

}  // namespace tycho
