// Activation slots of a decoder, with the indices that its code uses for them.
#pragma once
#include <cstdint>

#include "trainer/families/decoder_spec.h"
#include "trainer/layout/cp_shape.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/tp_parts.h"

namespace tycho {

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
enum : int {
  kStream,
  kNormedFinal,
  kMeanFinal,
  kInvFinal,
  kLogits,
  kStatistics,  // fp32, of a chunk: statistics of the logits of each token, and a loss's gradients by them
  kLosses,      // fp32, [losses of a token, N]
  kDStream,
  kDNormed
};
}

/// Returns the activation slots of a rank along tp and along cp. `spec` is the whole model's.
ActivationSpecs decoder_activations(const DecoderSpec& spec, BatchShape shape, int64_t compute_bytes,
                                    bool on_gpu = false, const TpShape& tp = {}, const CpShape& cp = {},
                                    const LossSlots& loss = {});

}  // namespace tycho
