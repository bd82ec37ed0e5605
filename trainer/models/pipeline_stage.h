// The part of a model that a rank computes, and the ranks along pp that have the others. For one rank: all of
// it.
#pragma once
#include <cstdint>
#include <utility>

#include "trainer/kernels/tensor.h"
#include "trainer/layout/stages.h"
#include "trainer/parallel/communicator.h"

namespace tycho {

/// Copies share the group. Functions that send or receive are called by all ranks along pp, chunk after
/// chunk, for passes forward alone; what of a training step is sent when, models/pipeline.h knows.
class PipelineStage {
 public:
  /// One rank has the whole model.
  PipelineStage() = default;
  /// `ranks`, those along pp, outlive it.
  PipelineStage(StagePart part, Communicator& ranks) : part_(std::move(part)), ranks_(&ranks) {}

  bool is_shared() const { return ranks_ != nullptr && ranks_->size() > 1; }
  /// Of a model of so many blocks.
  StagePart part(int64_t num_blocks) const { return is_shared() ? part_ : whole_model(num_blocks); }

  /// Fills the stream before a chunk with what the part before it made; nothing where the embedding does.
  void receive_input(size_t chunk, Tensor& x) const;
  /// Hands the stream after a chunk on; nothing before the head.
  void send_output(size_t chunk, const Tensor& x) const;
  /// Copies x of a stage to all. Collective.
  void share(Tensor& x, int64_t stage) const;
  /// The least that any stage says. Collective.
  int64_t least(int64_t mine) const;
  /// The ranks along pp; only where is_shared().
  Communicator& ranks() const { return *ranks_; }

 private:
  int neighbour(size_t chunk, int64_t parts_on) const;

  StagePart part_;
  Communicator* ranks_ = nullptr;
};

}  // namespace tycho
