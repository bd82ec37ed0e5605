// The config.json of GPT2LMHeadModel.
#include "trainer/families/gpt2.h"

#include "trainer/families/decoder_spec.h"
#include "trainer/families/hf_family.h"

namespace tycho {
namespace {

HfTable<Gpt2Config> make_gpt2_table() {
  HfTable<Gpt2Config> table = {
      mapped("n_embd", &Gpt2Config::width, positive),
      mapped("n_layer", &Gpt2Config::layers, positive),
      mapped("n_head", &Gpt2Config::heads, positive),
      mapped("n_inner", &Gpt2Config::ffn_width, positive),
      mapped("vocab_size", &Gpt2Config::vocab_size, positive),
      mapped("n_positions", &Gpt2Config::max_seq_len, positive),
      mapped("layer_norm_epsilon", &Gpt2Config::norm_eps, positive),
      mapped("attn_pdrop", &Gpt2Config::attn_dropout, below(0, 1)),
      mapped("resid_pdrop", &Gpt2Config::resid_dropout, below(0, 1)),
      mapped("embd_pdrop", &Gpt2Config::embedding_dropout, below(0, 1)),
      mapped("tie_word_embeddings", &Gpt2Config::tied),
      mapped("initializer_range", &Gpt2Config::init_std),
      {"activation_function",
       [](const JsonPath& place, Gpt2Config& model) { read_hf_activation(place, model.activation); },
       [](const Gpt2Config& model) -> std::optional<Json> {
         return hf_activation_name(model.activation, "gelu_new");
       }},
      only<Gpt2Config>("scale_attn_weights", {true},
                       "scores are always divided by the root of the head's width"),
      only<Gpt2Config>("scale_attn_by_inverse_layer_idx", {false},
                       "scores do not depend on the layer's number"),
      must_be<Gpt2Config>("add_cross_attention", {false}, "use a model without an encoder")};
  add_irrelevant(table, {"n_ctx", "reorder_and_upcast_attn", "summary_activation", "summary_first_dropout",
                         "summary_proj_to_labels", "summary_type", "summary_use_proj"});
  return table;
}

Gpt2Config gpt2_defaults() {
  Gpt2Config model;
  model.attn_dropout = model.resid_dropout = model.embedding_dropout = 0.1;
  return model;
}

}  // namespace

DecoderSpec spec_of(const Gpt2Config& c) {
  DecoderSpec s = sized_spec(c, c.hidden());
  s.norm.kind = NormKind::kLayer;
  s.norm.bias = s.attention.qkv_bias = s.attention.out_bias = s.ffn.bias = true;
  s.ffn.gated = false;
  s.in_out = true;
  s.positions.learned = c.max_seq_len;
  s.residual.dropout = c.resid_dropout, s.embedding.dropout = c.embedding_dropout;
  s.names = {.embedding = "transformer.wte",
             .positions = "transformer.wpe",
             .block = "transformer.h.",
             .norm1 = "ln_1",
             .norm2 = "ln_2",
             .q = "attn.c_attn",
             .k = "",
             .v = "",
             .out = "attn.c_proj",
             .gate = "",
             .up = "mlp.c_fc",
             .down = "mlp.c_proj",
             .final_norm = "transformer.ln_f"};
  s.init = normal_init(c.init_std, c.layers);
  return s;
}

const HfFamily<Gpt2Config>& hf_family(const Gpt2Config&) {
  static const HfFamily<Gpt2Config> family = {
      "gpt2", {"GPT2LMHeadModel", "GPT2Model"}, gpt2_defaults(), make_gpt2_table()};
  return family;
}

}  // namespace tycho
