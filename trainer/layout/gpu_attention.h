// Memory that LibTorch's attention takes on a GPU in addition to the activations that the planner lays out.
#pragma once
#include "trainer/families/decoder_spec.h"
#include "trainer/layout/cp_shape.h"
#include "trainer/layout/model_layout.h"

namespace tycho {

struct GpuAttentionBytes {
  int64_t kept = 0;     // kept from forward to backward, for all blocks: flash attention's log-sum-exp
  int64_t passing = 0;  // at most, while one block's backward computes
};
/// Returns the bytes for flash attention 2, or, where that has an obstacle, for plain products
/// (kernels/attention/product_attention.h). The ranks of `cp` share each sequence.
GpuAttentionBytes gpu_attention_bytes(const DecoderSpec& spec, bool bf16, BatchShape shape,
                                      const CpShape& cp = {});
/// Returns the reason why some block of this model cannot use flash attention; nullptr if all can.
const char* gpu_attention_obstacle(const DecoderSpec& spec, bool bf16, int64_t seq, int64_t cp = 1);

}  // namespace tycho
