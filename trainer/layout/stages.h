// Which blocks each stage of a pipeline has, and what of a model's units and activations that is. Torch-free.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/config/train_config.h"
#include "trainer/layout/decoder_spec.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/param_spec.h"
#include "trainer/pipeline/program.h"

namespace tycho {

/// What a rank along pp has of the model: blocks, the embedding on the first stage, the head on the last one.
struct StagePart {
  /// Neighbouring blocks [begin, end).
  struct Chunk {
    int64_t begin = 0, end = 0;
    int64_t num_sets = 1;  // micro-batches whose activations are kept at once
    int64_t size() const { return end - begin; }
    bool has(int64_t block) const { return block >= begin && block < end; }
    /// Rows of the residual stream: before each block and after the last one, of all sets.
    int64_t num_rows() const { return num_sets * (size() + 1); }
  };
  int64_t stage = 0, num_stages = 1;
  std::vector<Chunk> chunks;  // in the order of the model
  int64_t num_gradients = 1;  // of the residual stream, kept at once

  bool is_first() const { return stage == 0; }
  bool is_last() const { return stage + 1 == num_stages; }
  bool has_embedding(size_t chunk) const { return is_first() && chunk == 0; }
  bool has_head(size_t chunk) const { return is_last() && chunk + 1 == chunks.size(); }
  bool has_block(int64_t block) const;
  /// Rows of the stream before those of a chunk.
  int64_t first_row(size_t chunk) const;
};
/// Of a model whose blocks one rank has.
StagePart whole_model(int64_t num_blocks);

/// Of each part of the model, the number of its blocks: parallel.pp_layers, or such that the part that
/// computes longest takes as little as it can. Blocks that reuse keys, values or inputs of an earlier one
/// stay with it. For a config without stage_problems().
std::vector<int64_t> blocks_of_parts(const TrainConfig& config);
/// The work of the stage that computes longest, over the mean of all.
double stage_imbalance(const TrainConfig& config);
/// Keys of `parallel` by which this model cannot be cut.
std::vector<ConfigProblem> stage_problems(const TrainConfig& config);
/// What each stage has, in a step of so many micro-batches; and the one of that number.
std::vector<StagePart> stage_parts(const TrainConfig& config, int64_t num_micro_batches);
StagePart stage_part(const TrainConfig& config, int64_t stage, int64_t num_micro_batches);
/// The stage that has a unit; adapters are with their blocks.
int64_t stage_of_unit(const TrainConfig& config, int64_t unit);

/// Where the activations of each op of a stage's program lie. A gradient keeps its place until the next one
/// is sent, so that the stage computes while it is on its way.
struct StageSlots {
  std::vector<int64_t> num_sets;  // of each chunk
  int64_t num_gradients = 1;
  struct Place {
    int64_t set = 0, gradient = 0;  // of the chunk, of the stage; only those that the op needs
  };
  std::vector<Place> of_ops;
};
StageSlots stage_slots(const StageProgram& program, int64_t num_chunks);

/// The units of a stage, which may be those of a rank along tp: those of other stages are empty. When the
/// head is `tied`, the last stage has a copy of the embedding, which the first one saves and counts.
std::vector<UnitSpec> stage_units(std::vector<UnitSpec> units, const StagePart& part, bool tied);
/// Slots of a stage: of its own blocks, in as many sets as it needs.
ActivationSpecs stage_activations(ActivationSpecs specs, const StagePart& part);

}  // namespace tycho
