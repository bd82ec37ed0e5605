// Units and activation slots of a decoder, with the indices that its code uses for them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/families/decoder_spec.h"
#include "trainer/layout/cp_shape.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/tp_parts.h"

namespace tycho {

/// The adapter of a linear layer, y += scale B A x, in views that follow those of the block's unit.
struct AdapterViews {
  int weight = -1;              // view of the block that has the layer's matrix, perhaps stacked with others
  int a = -1, b = -1;           // A is [rank, columns], B is [rows, rank]
  int64_t first = 0, rows = 0;  // outputs of that view that belong to the layer
  int64_t columns = 0;          // inputs
  int64_t first_column = 0;     // first of the layer's inputs that a rank along tp has
};
/// Views of a block's unit; -1 where the model has none. up_* is gate and up stacked where the feed-forward
/// is gated. qkv_* is the queries' alone in a block that reuses keys and values or another block's input; a
/// block that reuses another block's input has kv_* in addition.
struct BlockParams {
  int norm1_weight = -1, norm1_bias = -1, norm2_weight = -1, norm2_bias = -1;
  int norm1_after_weight = -1, norm1_after_bias = -1, norm2_after_weight = -1, norm2_after_bias = -1;
  int qkv_weight = -1, qkv_bias = -1, kv_weight = -1, kv_bias = -1, out_weight = -1, out_bias = -1;
  int q_norm_weight = -1, q_norm_bias = -1, k_norm_weight = -1, k_norm_bias = -1;
  int up_weight = -1, up_bias = -1, down_weight = -1, down_bias = -1;
  std::vector<AdapterViews> adapters;
  double adapter_scale = 0;
};
BlockParams block_params(const DecoderSpec& spec, int64_t block);

/// Views of the embedding's unit.
namespace embedding_param {
enum : int { kTable, kPositions };
}

/// Views of the head's unit; the output is -1 when it is tied.
struct HeadParamIndex {
  int norm_weight = 0, norm_bias = -1, output = -1;
};
HeadParamIndex head_params(const DecoderSpec& spec);

/// Slots that a block keeps until its backward. Slots that a model does not need are empty.
namespace block_saved {
enum : int {
  kNormed1,
  kMean1,
  kInv1,
  kQkvRaw,  // before clamp and norm
  kQMean,
  kQInv,
  kKMean,
  kKInv,
  kQkv,
  kAttention,
  kLogSumExp,
  kMiddle,
  kNormed2,
  kMean2,
  kInv2,
  kUp,
  kDKv,       // gradient, from later blocks, of keys and values that these reuse
  kNormedKv,  // for another block's input
  kMeanKv,
  kInvKv,
  kDX,       // gradient of this block's input from later blocks that project keys and values from it
  kBranch1,  // output of attention's branch before its norm, with the norm's statistics
  kMeanAfter1,
  kInvAfter1,
  kBranch2,  // output of the feed-forward's branch before its norm
  kMeanAfter2,
  kInvAfter2
};
}
/// Slots that blocks share.
namespace block_scratch {
enum : int {
  kHidden,
  kDHidden,
  kDQkv,
  kDAttention,
  kDNormed,
  kAdded,
  kPackedQkv,
  kDNormedKv,
  kAllTokens,
  kPartial,
  kAllKv,         // keys and values of whole sequences, for ranks that share sequences
  kKvWorkspace,   // as large as kAllKv: the gradient of kAllKv, or keys and values in transit
  kRingKv,        // on a ring: keys and values of one rank, and those that arrive
  kRingDKv,       // fp32, on a ring: gradients of the current keys and values, arriving and leaving ones
  kRingSum,       // fp32, where compute is not: output, or gradient of queries, of the parts so far
  kAdapterInput,  // input after dropout, and the gradient of it
  kLow,           // activations of width rank
  kDLow,
  kAdapterOutput  // output of a layer in a stack, and the gradient of it
};
}
/// Slots outside of the blocks.
namespace model_slot {
enum : int { kStream, kNormedFinal, kMeanFinal, kInvFinal, kLogits, kLosses, kDStream, kDNormed };
}

ModelLayout decoder_layout(const DecoderSpec& spec);
/// Returns the names of all linear layers of the blocks, which may have adapters.
std::vector<std::string> linear_layer_names(const DecoderSpec& spec);
/// Returns the targets of adapters that are not regular expressions, or match no linear layer.
std::vector<ConfigProblem> adapter_problems(const DecoderSpec& spec);
/// Returns the activation slots of a rank along tp and along cp. `spec` is the whole model's.
ActivationSpecs decoder_activations(const DecoderSpec& spec, BatchShape shape, int64_t compute_bytes,
                                    bool on_gpu = false, const TpShape& tp = {}, const CpShape& cp = {});

}  // namespace tycho
