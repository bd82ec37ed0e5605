// Loss of a checkpoint on data, its answers to tasks, and the likelihood of texts.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/kernels/tensor.h"
#include "trainer/recipe/data.h"
#include "trainer/recipe/icl.h"
#include "trainer/saving/trained_source.h"
#include "trainer/session/eval_result.h"
#include "trainer/tasks/continuation.h"
#include "trainer/tasks/harness_requests.h"
#include "trainer/tasks/result.h"

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

/// Evaluates the tasks with the checkpoint's own tokenizer; prompts are as long as its model takes. Returns
/// nullopt when `stop` is not 0 before the end. Throws Error: kUsage for a checkpoint without a tokenizer,
/// and like icl_questions and score.
std::optional<IclResults> measure_icl(const TrainedSource& checkpoint, const IclConfig& config,
                                      const at::Device& device, const std::atomic<int>& stop);

/// Returns the log-likelihood of each request's continuation, as lm-evaluation-harness asks for it, in order,
/// by the checkpoint's model and tokenizer. Checks all requests before answering the first. Returns nullopt
/// when `stop` is not 0 before the end. Throws Error like encode_request and score.
std::optional<std::vector<ContinuationScore>> loglikelihoods(const TrainedSource& checkpoint,
                                                             const std::vector<HarnessRequest>& requests,
                                                             HarnessEncoding encoding,
                                                             const at::Device& device,
                                                             const std::atomic<int>& stop);

}  // namespace tycho
