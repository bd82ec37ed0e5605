// A model for generation: forward only, with a cache of keys and values.
#pragma once
#include <functional>
#include <vector>

#include "trainer/families/config.h"
#include "trainer/families/decoder_spec.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/stages.h"
#include "trainer/models/block_units.h"
#include "trainer/models/decoder_block.h"
#include "trainer/models/head.h"
#include "trainer/models/kv_cache.h"
#include "trainer/models/parallel_region.h"
#include "trainer/models/pipeline_stage.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {

/// Results of a Decoder's pass in addition to the logits after the last token.
struct DecoderLook {
  bool every_position = false;             // return logits of all tokens: [B * T, V]
  std::vector<Tensor>* streams = nullptr;  // receives the stream before each block and after the last, [B *
                                           // T, D]
  int64_t attention_block = -1;            // block whose attention weights `attention` receives
  Tensor* attention = nullptr;             // [B, H, T, S] in fp32; of the rank's own heads and blocks
  // Computes chosen rows instead of the logits after the last token: int64 on the device, rows of [B * T].
  // `chosen` receives the fp32 logits of consecutive parts of them, [P, V], and nothing is returned.
  Tensor rows_R = {};
  std::function<void(const Tensor& logits_PV)> chosen = {};
};

/// Sequences advance together, or each row of the batch has its own sequence. Every call is collective on the
/// ranks along tp and pp, and returns fp32 logits after the last token of each sequence that it was given
/// tokens of.
class Decoder {
 public:
  /// `region` and `stage`: see Model.
  Decoder(const ModelConfig& config, UnitStore& units, int64_t batch, int64_t num_positions,
          at::ScalarType dtype, const at::Device& device, const ParallelRegion& region = {},
          const PipelineStage& stage = {});
  /// Takes a model that no config describes.
  Decoder(const DecoderSpec& spec, UnitStore& units, int64_t batch, int64_t num_positions,
          at::ScalarType dtype, const at::Device& device, const ParallelRegion& region = {},
          const PipelineStage& stage = {});
  /// Returns [B, V]. tokens_N: int32 [B * T], the next tokens of all sequences, which must be equally long.
  Tensor next_logits(const Tensor& tokens_N, const DecoderLook& look = {});
  /// Starts a new sequence in a row, whose old contents are forgotten. Returns [1, V]. tokens_T: int32, the
  /// sequence's first tokens.
  Tensor begin_row(int64_t row, const Tensor& tokens_T);
  /// Returns [R, V]. tokens_R: int32, the next token of each of these rows, whose sequences may have any
  /// lengths. On a CPU up to kRowsOfSameBits rows have, to the bit, the logits that each has alone.
  Tensor next_of_rows(const std::vector<int64_t>& rows, const Tensor& tokens_R);
  static constexpr int64_t kRowsOfSameBits = 8;  // products of so few rows sum each of them in the same order

  /// Forgets the tokens of a row after the first `count`, so that its sequence continues from there.
  void keep_first(int64_t row, int64_t count);
  /// Returns the number of tokens in a row.
  int64_t length(int64_t row = 0) const { return length_B_[static_cast<size_t>(row)]; }
  int64_t num_positions() const { return num_positions_; }
  at::Device device() const { return options_.device(); }

 private:
  /// Runs a pass over these rows, which have equally many tokens.
  Tensor run(std::vector<CachedRows> rows, const Tensor& tokens_N, const DecoderLook& look);
  Tensor embed(const Tensor& tokens_N, int64_t seq);
  Tensor run_chunk(const StagePart::Chunk& chunk, Tensor x_ND, std::vector<Tensor>& inputs,
                   const DecoderLook& look);
  /// Returns fp32 logits [num_sequences, V], on all stages.
  Tensor head_logits(const Tensor& x_ND, int64_t num_sequences);
  /// Copies the streams of all stages to all of them.
  void share_streams(std::vector<Tensor>& streams, const Tensor& like) const;

  DecoderSpec spec_;  // spec of this rank
  ModelLayout layout_;
  HeadRules head_;
  PipelineStage stage_;
  StagePart part_;
  UnitStore& units_;
  BlockUnits block_units_;
  int64_t num_positions_;
  at::TensorOptions options_;  // options of the stream
  std::vector<DecoderBlock> blocks_;
  KvCache cache_;
  std::vector<int64_t> length_B_;  // filled positions of each row
};

}  // namespace tycho
