// Views where a micro-batch is whole, copies where it is not.
#include "trainer/train/micro_batches.h"

#include <ATen/ops/full.h>

#include <algorithm>

#include "trainer/data/rows/batch.h"

namespace tycho {
namespace {

Tensor part_of(const Tensor& all_N, int64_t begin, int64_t there, int64_t count, double filler) {
  if (!all_N.defined()) return Tensor();
  const Tensor given = all_N.narrow(0, begin, there);
  if (there == count) return given;
  Tensor filled = at::full({count}, filler, given.options());
  filled.narrow(0, 0, there).copy_(given);
  return filled;
}

}  // namespace

MicroBatch cut_micro_batch(const MicroBatch& whole, const BatchShape& shape, int64_t first_sequence,
                           int64_t num_sequences) {
  const int64_t begin = first_sequence * shape.seq, count = shape.tokens();
  const int64_t there = std::min(count, (num_sequences - first_sequence) * shape.seq);
  MicroBatch micro = whole;
  micro.tokens_N = part_of(whole.tokens_N, begin, there, count, 0);
  micro.targets_N = part_of(whole.targets_N, begin, there, count, kNoTarget);
  micro.documents_N = part_of(whole.documents_N, begin, there, count, 0);
  micro.weights_N = part_of(whole.weights_N, begin, there, count, 0);
  micro.first = first_sequence == 0;
  micro.last = first_sequence + shape.batch >= num_sequences;
  return micro;
}

}  // namespace tycho
