// The part of a model that a rank computes, and the ranks along pp that have the others. One rank has all of
// it.
#pragma once
#include <cstdint>
#include <utility>

#include "trainer/comm/communicator.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/stages.h"

namespace tycho {

/// Part of a model on one rank along pp. Copies share the group. Functions that send or receive are called by
/// all ranks along pp, chunk after chunk, for forward passes only; models/pipeline.h exchanges the messages
/// of training steps.
class PipelineStage {
 public:
  /// Stage of a rank that has the whole model.
  PipelineStage() = default;
  /// `ranks`, those along pp, must outlive this object.
  PipelineStage(StagePart part, Communicator& ranks) : part_(std::move(part)), ranks_(&ranks) {}

  bool is_shared() const { return ranks_ != nullptr && ranks_->size() > 1; }
  /// Returns this rank's part of a model of `num_blocks` blocks.
  StagePart part(int64_t num_blocks) const { return is_shared() ? part_ : whole_model(num_blocks); }

  /// Receives the stream before a chunk from the previous part. Does nothing for the chunk with the
  /// embedding.
  void receive_input(size_t chunk, Tensor& x) const;
  /// Sends the stream after a chunk to the next part. Does nothing for the chunk with the head.
  void send_output(size_t chunk, const Tensor& x) const;
  /// Copies x of a stage to all stages. Collective.
  void share(Tensor& x, int64_t stage) const;
  /// Returns the least `mine` of all stages. Collective.
  int64_t least(int64_t mine) const;
  /// Group of the ranks along pp. Requires is_shared().
  Communicator& ranks() const { return *ranks_; }

 private:
  int neighbour(size_t chunk, int64_t parts_on) const;

  StagePart part_;
  Communicator* ranks_ = nullptr;
};

}  // namespace tycho
