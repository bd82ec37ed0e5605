// A decoder-only transformer in the terms of one program; every family's config is converted to it.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/activation.h"
#include "trainer/families/feed_forward_activation.h"
#include "trainer/families/fp8_config.h"
#include "trainer/families/init.h"
#include "trainer/families/lora_config.h"
#include "trainer/families/rope_config.h"

namespace tycho {

enum class NormKind { kRms, kLayer };
struct NormSpec {
  NormKind kind = NormKind::kRms;
  double eps = 1e-5;
  bool bias = false;
  double weight_offset = 0;  // the norm multiplies by offset + weight; 1: Gemma, whose weights are near 0
};

/// Norms of a block: of what enters a branch, of what it adds to the stream, or of both.
enum class NormPosition { kBefore, kAfter, kBoth };

/// Norm of queries and keys: none, one over all heads of the queries (and one of the keys), or one for each
/// head.
enum class QkNorm { kNone, kTogether, kPerHead };

struct AttentionSpec {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  /// For a rank along tp, which has some of the heads: the first one, and the number of all ranks' heads.
  int64_t first_head = 0, all_heads = 0;
  bool qkv_bias = false, out_bias = false;
  double softmax_scale = 0;
  double softcap = 0;   // 0: none
  double clip_qkv = 0;  // 0: none
  QkNorm qk_norm = QkNorm::kNone;
  NormSpec qk = {.kind = NormKind::kLayer};  // of queries and keys
  double dropout = 0;
  bool any_order = false;  // gradients may be added in any order (AttentionConfig); not the family's
  bool flash_3 = false;    // FlashAttention-3 computes what it can (AttentionConfig); not the family's

  int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
  int64_t width() const { return heads * head_dim; }
  /// True if queries, keys and values are changed between their projection and attention, other than rotated.
  bool changes_qkv() const { return clip_qkv > 0 || qk_norm != QkNorm::kNone; }
};

struct FeedForwardSpec {
  int64_t width = 0;
  int64_t first_hidden = 0;  // for a rank along tp, which has some of the hidden features
  bool gated = true;         // act(gate(x)) up(x) instead of act(up(x))
  FeedForwardActivation activation = Activation::kSilu;
  bool bias = false;
};

/// Rotations of queries and keys.
struct RotarySpec {
  double theta = 10000;
  int64_t dim = 0;  // number of elements of a head that are rotated, the first ones
  RopeScalingConfig scaling = {};
  double xpos_scale_base = 0;  // 0: no xPos
};

struct PositionsSpec {
  int64_t learned = 0;             // rows of the table; 0: none
  std::vector<RotarySpec> rotary;  // a block names the one that it uses; none: no rotary positions
  double alibi_bias_max = 0;       // 0: no ALiBi
};

/// Changes of embeddings before the first block.
struct EmbeddingSpec {
  double scale = 1;     // rounded to the compute dtype
  double fraction = 1;  // of the gradient that reaches the table
  double dropout = 0;
};

/// Changes of the output of a branch before it is added to the stream.
struct ResidualSpec {
  double scale = 1;
  double dropout = 0;
};

struct LogitsSpec {
  double scale = 1, softcap = 0;  // 0: none
};

/// Hugging Face's names, without ".weight" and ".bias": Llama's unless set.
struct DecoderNames {
  std::string embedding = "model.embed_tokens", positions = "";
  std::string block = "model.layers.";                                        // the number and a point follow
  std::string norm1 = "input_layernorm", norm2 = "post_attention_layernorm";  // before each branch
  std::string norm1_after = "", norm2_after = "";
  std::string q_norm = "", k_norm = "";
  // One name for each projection; k and v are empty where q is the name of all three.
  std::string q = "self_attn.q_proj", k = "self_attn.k_proj", v = "self_attn.v_proj";
  std::string q_alone = "";  // for a block without its own keys and values
  std::string out = "self_attn.o_proj";
  // up is empty where gate is the name of both.
  std::string gate = "mlp.gate_proj", up = "mlp.up_proj", down = "mlp.down_proj";
  std::string final_norm = "model.norm", head = "lm_head";
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
  size_t rotary = 0;      // index of the block's rotations in PositionsSpec::rotary
  double attn_scale =
      0;  // queries times 1 + attn_scale ln(floor((position + counts_from) / floor_scale) + 1)
  double floor_scale = 8192;
  int64_t counts_from = 1;  // 1 for the first token of a document, or 0
  int64_t x_block = 0;   // block whose input the keys and values are projected from: this one, or an earlier
                         // one that projects from its own
  int64_t kv_block = 0;  // block whose keys and values this one attends to: this one, or an earlier one that
                         // has its own
};

struct DecoderSpec {
  int64_t width = 0, layers = 0, vocab_size = 0;
  int64_t first_vocab = 0;  // for a rank along tp, which has some of the vocabulary
  bool tied = false;
  bool in_out = false;  // matrices of blocks are stored as [in, out]
  NormSpec norm;
  NormPosition norm_position = NormPosition::kBefore;
  AttentionSpec attention;
  FeedForwardSpec ffn;
  PositionsSpec positions;
  EmbeddingSpec embedding;
  ResidualSpec residual;
  LogitsSpec logits;
  std::vector<BlockSpec> blocks;  // one per layer
  DecoderNames names;
  DecoderInit init;
  LoraConfig lora;
  Fp8Config fp8;

  const BlockSpec& block(int64_t i) const { return blocks[static_cast<size_t>(i)]; }
  bool norms_before() const { return norm_position != NormPosition::kAfter; }
  bool norms_after() const { return norm_position != NormPosition::kBefore; }
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
};

/// Returns a spec with what every family's config has under the same name: sizes, norm_eps, dropout of
/// attention, activation, tied; blocks that differ in nothing; the scale of attention is 1 / sqrt(head_dim).
template <class Family>
DecoderSpec sized_spec(const Family& model, int64_t ffn_width);
/// Returns normal weights of one deviation, smaller by sqrt(2 layers) where they lead back into the residual
/// stream.
DecoderInit normal_init(double std, int64_t layers);
Init normal(double std);
/// Returns sqrt(2 layers).
double residual_divisor(int64_t layers);

/// Returns the slope of each head (Press et al. 2022, arXiv:2108.12409; the order of MPT for head counts that
/// are no power of two).
std::vector<float> alibi_slopes(int64_t heads, double bias_max);

template <class Family>
DecoderSpec sized_spec(const Family& model, int64_t ffn_width) {
  DecoderSpec s;
  s.width = model.width, s.layers = model.layers, s.vocab_size = model.vocab_size, s.tied = model.tied;
  AttentionSpec& a = s.attention;
  a.heads = a.all_heads = model.heads, a.kv_heads = model.num_kv_heads(), a.head_dim = model.head_dim();
  a.softmax_scale = 1.0 / std::sqrt(static_cast<double>(a.head_dim));
  a.dropout = model.attn_dropout;
  s.ffn.width = ffn_width, s.ffn.activation = model.activation;
  s.norm.eps = model.norm_eps;
  s.blocks.resize(static_cast<size_t>(model.layers));
  for (int64_t i = 0; i < model.layers; ++i)
    s.blocks[static_cast<size_t>(i)].kv_block = s.blocks[static_cast<size_t>(i)].x_block = i;
  return s;
}

}  // namespace tycho
