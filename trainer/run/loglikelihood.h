// Log-likelihoods of continuations under a trained model, as lm-evaluation-harness requests them.
#pragma once
#include <atomic>
#include <optional>
#include <vector>

#include "trainer/kernels/tensor.h"
#include "trainer/saving/trained_source.h"
#include "trainer/tasks/continuation.h"
#include "trainer/tasks/harness_requests.h"

namespace tycho {

/// Returns a score for each request, in order, by the checkpoint's model and tokenizer. Checks all requests
/// before answering the first. Returns nullopt when `stop` is not 0 before the end. Throws Error like
/// encode_request and score.
std::optional<std::vector<ContinuationScore>> loglikelihoods(const TrainedSource& checkpoint,
                                                             const std::vector<HarnessRequest>& requests,
                                                             HarnessEncoding encoding,
                                                             const at::Device& device,
                                                             const std::atomic<int>& stop);

}  // namespace tycho
