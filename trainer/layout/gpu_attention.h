// Memory that LibTorch's attention takes on a GPU in addition to the activations that the planner lays out.
#pragma once
#include <string>

#include "trainer/base/gpu_shape.h"
#include "trainer/families/decoder_spec.h"
#include "trainer/layout/cp_shape.h"
#include "trainer/layout/model_layout.h"

namespace tycho {

struct GpuAttentionBytes {
  int64_t passing = 0;  // at most, while one block's backward computes
  int64_t copies =
      0;  // fp32 sums of dq that flash attention adds in a fixed order; 0 without flash attention
};
/// Returns the bytes for FlashAttention-3 (AttentionSpec::flash_3) or flash attention 2, or, where these have
/// an obstacle, for plain products (kernels/attention/product_attention.h), in addition to their results
/// (SlotSpec::of_library). cuDNN's attention, used with AttentionSpec::any_order, is counted as flash
/// attention with one sum of dq: LibTorch does not say what its workspace takes. The ranks of `cp` share each
/// sequence. num_sms: of the GPU.
GpuAttentionBytes gpu_attention_bytes(const DecoderSpec& spec, bool bf16, BatchShape shape, const CpShape& cp,
                                      int64_t num_sms);
/// True if flash attention 2 or 3 or cuDNN computes this block, not plain products.
bool has_fused_attention(const DecoderSpec& spec, const BlockSpec& block, bool bf16, int64_t seq, int64_t cp);
/// Returns the reason why some block of this model can use neither flash attention 2 nor, with
/// AttentionSpec::flash_3, 3; nullptr if all can.
const char* gpu_attention_obstacle(const DecoderSpec& spec, bool bf16, int64_t seq, int64_t cp = 1);
/// Returns the reason why some block of this model cannot use FlashAttention-3; nullptr if all can.
const char* flash_3_attention_obstacle(const DecoderSpec& spec, bool bf16, int64_t seq, int64_t cp = 1);
/// True if FlashAttention-3 computes some block, if only in evaluations, which drop nothing:
/// AttentionSpec::flash_3 asks for it, and it can.
bool uses_flash_3(const DecoderSpec& spec, bool bf16, int64_t seq, int64_t cp);
/// Returns the reason why some block of this model cannot use cuDNN's attention; nullptr if all can, as far
/// as it does not depend on the data.
const char* cudnn_attention_obstacle(const DecoderSpec& spec, bool bf16, int64_t seq, int64_t cp = 1);
/// Returns why this GPU cannot compute the gradient of flash attention 2, which it would be asked for, and
/// what to do; "" if it can. A GPU of unknown compute capability can.
std::string flash_gradient_problem(const DecoderSpec& spec, bool bf16, int64_t seq, int64_t cp,
                                   const GpuShape& gpu);

}  // namespace tycho
