// Phi-3 as a decoder, and the config.json of Phi3ForCausalLM.
#include "trainer/families/phi.h"

#include "trainer/families/dense_hf.h"

namespace tycho {
namespace {

/// Returns the document with what is left out of rope_parameters. "yarn" means longrope here; the original
/// length and the factor, which is the ratio of the lengths, belong to the model.
Json canonical_phi3(Json document) {
  const Json original = document.value("original_max_position_embeddings", Json(4096)),
             longest = document.value("max_position_embeddings", Json(4096));
  document["original_max_position_embeddings"] = original;
  document = with_rope_parameters(std::move(document), 10000);
  Json rope = document["rope_parameters"];
  if (!rope.is_object()) return document;
  if (rope.contains("partial_rotary_factor"))
    document["partial_rotary_factor"] = rope["partial_rotary_factor"];
  if (rope.value("rope_type", Json()) == "yarn") rope["rope_type"] = "longrope";
  if (rope.value("factor", Json()).is_null() && original.is_number() && longest.is_number() && original > 0)
    rope["factor"] = std::max(1.0, longest.get<double>() / original.get<double>());
  document["rope_parameters"] = std::move(rope);
  return document;
}

HfTable<Phi3Config> phi3_table() {
  using Family = Phi3Config;
  HfTable<Family> table =
      with_rows<Family>(dense_table<Family>({"default", "longrope"}),
                        {window_key<Family>(),
                         mapped("partial_rotary_factor", &Family::partial_rotary_factor, positive),
                         mapped("resid_pdrop", &Family::resid_dropout, below(0, 1)),
                         {"original_max_position_embeddings",
                          {},
                          [](const Family& model) -> std::optional<Json> {
                            if (model.rope_scaling.type == RopeScaling::kNone) return model.max_seq_len;
                            return model.rope_scaling.original_max_seq_len;
                          }},
                         only<Family>("hidden_act", {"silu", "swish"}, "this is not Phi-3's architecture"),
                         must_be<Family>("attention_bias", {false, nullptr}, "the reference has no biases"),
                         must_be<Family>("mlp_bias", {false, nullptr}, "the reference has no biases"),
                         must_be<Family>("lm_head_bias", {false, nullptr}, "the reference has no biases")});
  add_irrelevant(table, {"embd_pdrop", "interpolate_factor", "full_attn_mod", "layer_types", "embd_layer"});
  return table;
}

Phi3Config phi3_defaults() {
  Phi3Config model;
  model.width = 3072, model.layers = model.heads = 32;
  model.ffn_width = 8192, model.vocab_size = 32064, model.max_seq_len = 4096;
  return model;
}

}  // namespace

DecoderSpec spec_of(const Phi3Config& c) {
  DecoderSpec s = dense_spec(c);
  s.positions.rotary.front().dim = c.rotary_dim();
  s.residual.dropout = c.resid_dropout;
  s.names.q = "self_attn.qkv_proj", s.names.k = s.names.v = "";
  s.names.gate = "mlp.gate_up_proj", s.names.up = "";
  set_windows(c, s);
  return s;
}

const HfFamily<Phi3Config>& hf_family(const Phi3Config&) {
  static const HfFamily<Phi3Config> family = {.model_type = "phi3",
                                              .architectures = {"Phi3ForCausalLM", "Phi3Model"},
                                              .defaults = phi3_defaults(),
                                              .table = phi3_table(),
                                              .canonical = canonical_phi3};
  return family;
}

}  // namespace tycho
