// Cuts a batch into micro-batches.
#pragma once
#include "trainer/layout/model_layout.h"
#include "trainer/models/model.h"

namespace tycho {

/// The micro-batch that begins at a sequence of `whole`, a batch of num_sequences: views of its tensors. A
/// last one that is smaller is filled up with sequences without a target, which weigh nothing. The dropout
/// key is that of `whole`.
MicroBatch cut_micro_batch(const MicroBatch& whole, const BatchShape& shape, int64_t first_sequence,
                           int64_t num_sequences);

}  // namespace tycho
