// Units of a decoder, with the indices that its code uses for them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/families/decoder_spec.h"
#include "trainer/layout/adapters.h"
#include "trainer/layout/fp8_layers.h"
#include "trainer/layout/model_layout.h"

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
/// block that reuses another block's input has kv_* in addition. Views of adapters follow the unit's own, and
/// factors of the unit's own views follow these, where the unit is gathered as codes of fp8.
struct BlockParams {
  int norm1_weight = -1, norm1_bias = -1, norm2_weight = -1, norm2_bias = -1;
  int norm1_after_weight = -1, norm1_after_bias = -1, norm2_after_weight = -1, norm2_after_bias = -1;
  int qkv_weight = -1, qkv_bias = -1, kv_weight = -1, kv_bias = -1, out_weight = -1, out_bias = -1;
  int q_norm_weight = -1, q_norm_bias = -1, k_norm_weight = -1, k_norm_bias = -1;
  int up_weight = -1, up_bias = -1, down_weight = -1, down_bias = -1;
  std::vector<AdapterViews> adapters;
  double adapter_scale = 0;
  std::vector<Fp8Product> fp8;
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

ModelLayout decoder_layout(const DecoderSpec& spec);
/// Returns the layers of a block that multiply in fp8.
Fp8Layers block_fp8_layers(const DecoderSpec& spec, int64_t block);
/// Returns the linear layers of a block, in the order of its arithmetic.
std::vector<LinearLayer> linear_layers(const DecoderSpec& spec, int64_t block);
/// Returns the names of all linear layers of the blocks, which may have adapters.
std::vector<std::string> linear_layer_names(const DecoderSpec& spec);
/// Returns the targets of adapters that are not regular expressions, or match no linear layer.
std::vector<ConfigProblem> adapter_problems(const DecoderSpec& spec);

}  // namespace tycho
