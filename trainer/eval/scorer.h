// Asks a model about continuations: only the logits before their tokens are computed.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/families/config.h"
#include "trainer/kernels/tensor.h"
#include "trainer/models/parallel_region.h"
#include "trainer/models/pipeline_stage.h"
#include "trainer/sharding/unit_store.h"
#include "trainer/tasks/continuation.h"

namespace tycho {

/// A model, and the ranks that divide the questions. Everything that it refers to must outlive it.
struct AskedModel {
  const ModelConfig& model;
  UnitStore& units;
  at::ScalarType dtype;
  at::Device device;
  ParallelRegion region;     // ranks along tp, which compute the same questions together
  PipelineStage stage;       // part of the model on this rank; all stages compute the same questions
  Communicator& data_ranks;  // ranks that compute different questions
  Communicator& world;       // all ranks
  int64_t batch_tokens;      // tokens that pass through the model at once; a longer text passes alone
};

/// Returns one score for each continuation, the same on every rank and, bit for bit, for any number of ranks:
/// batches are made of all continuations, sorted by length, before ranks divide them, and all ranks make the
/// same number of passes. No continuation may have more tokens than the model's longest sequence, not
/// counting the last one. Returns nullopt when `stop` is not 0 on some rank before the end. When the model
/// gives NaN, the log-likelihood is NaN, the probabilities are 0, and is_greedy is false. Collective.
std::optional<std::vector<ContinuationScore>> score(const AskedModel& asked,
                                                    const std::vector<Continuation>& continuations,
                                                    const std::atomic<int>& stop);

}  // namespace tycho
