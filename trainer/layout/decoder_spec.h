// A decoder-only transformer in the terms of one program; every family's config is converted to it.
#pragma once
#include <cstdint>
#include <string>

#include "trainer/base/activation.h"
#include "trainer/families/config.h"
#include "trainer/families/lora_config.h"
#include "trainer/families/rope_config.h"
#include "trainer/layout/param_spec.h"

namespace tycho {

enum class NormKind { kRms, kLayer };
/// LayerNorm before the scores: none, one over all heads of the queries (and one of the keys), or one for
/// each head.
enum class QkNorm { kNone, kTogether, kPerHead };

/// Hugging Face's names, without ".weight" and ".bias".
struct DecoderNames {
  std::string embedding, positions;
  std::string block;  // "model.layers."; the number and a point follow
  std::string norm1, norm2, q_norm, k_norm;
  std::string q, k, v;  // one name for each projection; k and v are empty where q is the name of all three
  std::string q_alone;  // for a block without its own keys and values
  std::string out, gate, up, down;
  std::string final_norm, head;
};

/// Initial values of matrices.
struct DecoderInit {
  Init embedding, positions, head;
  Init qkv, out, gate, up, down;
  bool by_depth = false;      // divide out, up and down of block i, from 1, by sqrt(2 i)
  bool draws_biases = false;  // uniform in ±1 / sqrt(fan_in), as in torch's own layers; zeros otherwise
};

/// Properties that may differ from block to block.
struct BlockSpec {
  int64_t window = -1;    // number of keys before its own that a query sees; -1: all
  bool positions = true;  // apply rotary positions or ALiBi, where the model has them
  double attn_scale = 0;  // queries times 1 + attn_scale ln(floor((position + 1) / floor_scale) + 1)
  double floor_scale = 8192;
  int64_t x_block = 0;   // block whose input the keys and values are projected from: this one, or an earlier
                         // one that projects from its own
  int64_t kv_block = 0;  // block whose keys and values this one attends to: this one, or an earlier one that
                         // has its own
};

struct DecoderSpec {
  int64_t width = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn_width = 0, vocab_size = 0;
  NormKind norm = NormKind::kRms;
  double norm_eps = 1e-5;
  bool norm_bias = false, qkv_bias = false, out_bias = false, ffn_bias = false;
  bool gated = true;  // act(gate(x)) up(x) instead of act(up(x))
  Activation activation = Activation::kSilu;
  bool in_out = false;  // matrices of blocks are stored as [in, out]

  int64_t learned_positions = 0;  // rows of the table; 0: none
  double rope_theta = 0;          // 0: no rotary positions
  RopeScalingConfig rope_scaling;
  double xpos_scale_base = 0;  // 0: no xPos
  double alibi_bias_max = 0;   // 0: no ALiBi

  double softmax_scale = 0;
  double attn_softcap = 0;  // 0: none
  double clip_qkv = 0;      // 0: none
  QkNorm qk_norm = QkNorm::kNone;
  double qk_norm_eps = 1e-5;
  bool qk_norm_bias = false;

  double attn_dropout = 0, resid_dropout = 0, embedding_dropout = 0, embedding_fraction = 1;
  double logit_scale = 1, final_softcap = 0;  // 0: none
  bool tied = false;

  std::vector<BlockSpec> blocks;  // one per layer
  LoraConfig lora;

  /// For a rank along tp, which has some of the heads, hidden features and vocabulary: the first ones, and
  /// the number of heads of all ranks together.
  int64_t first_head = 0, all_heads = 0, first_vocab = 0, first_hidden = 0;

  DecoderNames names;
  DecoderInit init;

  const BlockSpec& block(int64_t i) const { return blocks[static_cast<size_t>(i)]; }
  bool reuses_kv(int64_t i) const { return block(i).kv_block != i; }
  bool reuses_x(int64_t i) const { return block(i).x_block != i; }
  /// Returns the last block that attends to the keys and values of block i, which has its own: i, or a later
  /// one.
  int64_t last_user_of_kv(int64_t i) const;
  /// Returns the last block that uses the input of block i, which projects from its own: i, or a later one.
  int64_t last_user_of_x(int64_t i) const;
  /// True if some block reuses the keys and values, or the input, of another.
  bool shares_kv() const;
  bool shares_x() const;
  int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
  int64_t attention_width() const { return heads * head_dim; }
  /// True if queries, keys and values are changed between their projection and attention, other than rotated.
  bool changes_qkv() const { return clip_qkv > 0 || qk_norm != QkNorm::kNone; }
};

/// Converts a model of any family to the decoder's terms.
DecoderSpec decoder_spec(const ModelConfig& config);

/// Returns the slope of each head (Press et al. 2022, arXiv:2108.12409; the order of MPT for head counts that
/// are no power of two).
std::vector<float> alibi_slopes(int64_t heads, double bias_max);

}  // namespace tycho
