// The blocks of each stage of a pipeline, and its units and activations. Torch-free.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/families/decoder_spec.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/param_spec.h"
#include "trainer/pipeline/program.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Part of the model of a rank along pp: blocks, the embedding on the first stage, the head on the last one.
struct StagePart {
  /// Consecutive blocks [begin, end).
  struct Chunk {
    int64_t begin = 0, end = 0;
    int64_t num_sets = 1;  // number of micro-batches whose activations are kept at once
    int64_t size() const { return end - begin; }
    bool has(int64_t block) const { return block >= begin && block < end; }
    /// Number of rows of the residual stream: before each block and after the last one, of all sets.
    int64_t num_rows() const { return num_sets * (size() + 1); }
  };
  int64_t stage = 0, num_stages = 1;
  std::vector<Chunk> chunks;  // in the order of the model
  int64_t num_gradients = 1;  // number of gradients of the residual stream that are kept at once

  bool is_first() const { return stage == 0; }
  bool is_last() const { return stage + 1 == num_stages; }
  bool has_embedding(size_t chunk) const { return is_first() && chunk == 0; }
  bool has_head(size_t chunk) const { return is_last() && chunk + 1 == chunks.size(); }
  bool has_block(int64_t block) const;
  /// Number of rows of the stream before those of a chunk.
  int64_t first_row(size_t chunk) const;
};
/// Returns the part of a model whose blocks are all on one rank.
StagePart whole_model(int64_t num_blocks);

/// Returns the number of blocks of each part of the model: parallel.pp_layers, or numbers that minimize the
/// time of the slowest part. Blocks that reuse keys, values or inputs of an earlier one stay with it.
/// Requires a config without stage_problems().
std::vector<int64_t> blocks_of_parts(const TrainConfig& config);
/// Returns the work of the slowest stage, divided by the mean of all.
double stage_imbalance(const TrainConfig& config);
/// Returns the keys of `parallel` by which this model cannot be cut.
std::vector<ConfigProblem> stage_problems(const TrainConfig& config);
/// Returns the part of each stage, or of one, in a step of `num_micro_batches`.
std::vector<StagePart> stage_parts(const TrainConfig& config, int64_t num_micro_batches);
StagePart stage_part(const TrainConfig& config, int64_t stage, int64_t num_micro_batches);
/// Returns the stage that has a unit; adapters are with their blocks.
int64_t stage_of_unit(const TrainConfig& config, int64_t unit);

/// Memory for the activations of each op of a stage's program. A gradient keeps its place until the next one
/// is sent, so that the stage computes while it is in transit.
struct StageSlots {
  std::vector<int64_t> num_sets;  // one number for each chunk
  int64_t num_gradients = 1;
  struct Place {
    int64_t set = 0, gradient = 0;  // index in the chunk's sets and in the stage's gradients; only those that
                                    // the op needs
  };
  std::vector<Place> of_ops;
};
StageSlots stage_slots(const StageProgram& program, int64_t num_chunks);

/// Returns the units of a stage, given those of the model or of a rank along tp: units of other stages are
/// empty. When the head is `tied`, the last stage has a copy of the embedding, which the first one saves and
/// counts.
std::vector<UnitSpec> stage_units(std::vector<UnitSpec> units, const StagePart& part, bool tied);
/// Returns the slots of a stage: those of its own blocks, in as many sets as it needs.
ActivationSpecs stage_activations(ActivationSpecs specs, const StagePart& part);

}  // namespace tycho
