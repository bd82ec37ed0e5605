// Cuts a batch into micro-batches.
#pragma once
#include "trainer/layout/model_layout.h"
#include "trainer/models/model.h"

namespace tycho {

/// Returns the micro-batch that begins at a sequence of `whole`, a batch of num_sequences, as views of its
/// tensors. Fills up a smaller last one with sequences without targets, which have no weight. The dropout key
/// is that of `whole`.
MicroBatch cut_micro_batch(const MicroBatch& whole, const BatchShape& shape, int64_t first_sequence,
                           int64_t num_sequences);

}  // namespace tycho
