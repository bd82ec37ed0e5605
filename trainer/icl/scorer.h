// Asks a model about continuations: only the logits before their tokens are computed.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "trainer/families/config.h"
#include "trainer/icl/continuation.h"
#include "trainer/kernels/tensor.h"
#include "trainer/models/parallel_region.h"
#include "trainer/models/pipeline_stage.h"
#include "trainer/parallel/communicator.h"
#include "trainer/parallel/unit_store.h"

namespace tycho {

/// A model to ask, and the ranks that share the questions out. What it refers to outlives it.
struct AskedModel {
  const ModelConfig& model;
  UnitStore& units;
  at::ScalarType dtype;
  at::Device device;
  ParallelRegion region;     // the ranks along tp, which are asked the same together
  PipelineStage stage;       // the part of the model that this rank computes; all stages are asked the same
  Communicator& data_ranks;  // those that are asked different things
  Communicator& world;       // all of them
  int64_t batch_tokens;      // that pass through the model at once; a longer text passes alone
};

/// One score for each, the same on every rank and, to the bit, whatever their number: batches are made of all
/// continuations, sorted by length, before ranks share them out, and all ranks make as many passes. None has
/// more than the model's longest sequence of tokens, the last one not counted. Nothing when `stop` is not 0
/// on some rank before the end. Where the model gives NaN, the log-likelihood is NaN, the probabilities are
/// 0, and is_greedy is false. Collective.
std::optional<std::vector<ContinuationScore>> score(const AskedModel& asked,
                                                    const std::vector<Continuation>& continuations,
                                                    const std::atomic<int>& stop);

}  // namespace tycho
