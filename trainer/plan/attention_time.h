// Predicts what the order of sums, and the library that computes it, cost attention on a GPU, by published
// rates. Torch-free.
#pragma once
#include <cstdint>

#include "trainer/families/decoder_spec.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// The calls of attention for a micro-batch on one rank.
struct AttentionCalls {
  int64_t sequences = 1;  // of a micro-batch
  int64_t heads = 1;      // on this rank
  int num_sms = 132;      // of the GPU
  double peak = 0;        // FLOP/s in bf16; rates are known for an H100's
};

/// Returns the seconds of all layers' attention to one micro-batch, minus those of flash attention that adds
/// in any order, which published speeds, and so a machine's efficiency, include. Positive in a fixed order:
/// ceil(num_sms / (sequences x heads)) groups of blocks, one on each multiprocessor, then leave the last wave
/// in part idle. Negative with attention.deterministic = false where cuDNN computes, and where
/// FlashAttention-3 computes all blocks. 0 where plain products compute.
double attention_order_s(const TrainConfig& config, const DecoderSpec& spec, const AttentionCalls& calls);

}  // namespace tycho
