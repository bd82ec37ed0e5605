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
                         activation_key<Family>("hidden_act"),
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

const HfPresets kPhi3Presets = {
    {"phi-3-mini-4k",
     R"({"hidden_size": 3072, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads":
       32, "intermediate_size": 8192, "vocab_size": 32064, "sliding_window": 2047})"},
    {"phi-3-mini-128k",
     R"({"hidden_size": 3072, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads":
       32, "intermediate_size": 8192, "vocab_size": 32064, "max_position_embeddings": 131072,
       "sliding_window": 262144, "original_max_position_embeddings": 4096, "rope_scaling": {"type":
       "longrope", "short_factor": [1.1, 1.1, 1.1, 1.3000000000000003, 1.3500000000000003,
       1.3500000000000003, 1.4000000000000004, 1.5500000000000005, 2.000000000000001, 2.000000000000001,
       2.000000000000001, 2.000000000000001, 2.000000000000001, 2.000000000000001, 2.000000000000001,
       2.000000000000001, 2.000000000000001, 2.000000000000001, 2.000000000000001, 2.000000000000001,
       2.000000000000001, 2.000000000000001, 2.000000000000001, 2.000000000000001, 2.000000000000001,
       2.0500000000000007, 2.0500000000000007, 2.0500000000000007, 2.0500000000000007,
       2.0500000000000007, 2.0500000000000007, 2.1000000000000005, 2.1000000000000005,
       2.1500000000000004, 2.25, 2.25, 2.25, 2.25, 2.25, 2.3999999999999995, 2.4499999999999993,
       2.499999999999999, 2.6999999999999984, 2.6999999999999984, 2.7499999999999982, 2.799999999999998,
       2.8999999999999977, 3.049999999999997], "long_factor": [1.0700000524520874, 1.1200000047683716,
       1.149999976158142, 1.4199999570846558, 1.5699999332427979, 1.7999999523162842, 2.129999876022339,
       2.129999876022339, 3.009999990463257, 5.910000324249268, 6.950000286102295, 9.070000648498535,
       9.930000305175781, 10.710000038146973, 11.130000114440918, 14.609999656677246, 15.409998893737793,
       19.809999465942383, 37.279998779296875, 38.279998779296875, 38.599998474121094, 40.12000274658203,
       46.20000457763672, 50.940006256103516, 53.66000747680664, 54.9373893737793, 56.89738845825195,
       57.28738784790039, 59.98738479614258, 60.86738586425781, 60.887386322021484, 61.71739196777344,
       62.91739273071289, 62.957393646240234, 63.41739273071289, 63.8173942565918, 63.83739471435547,
       63.897396087646484, 63.93739700317383, 64.06739807128906, 64.11434936523438, 64.12435150146484,
       64.15435028076172, 64.19435119628906, 64.24435424804688, 64.57435607910156, 64.69000244140625,
       64.76000213623047]}})"},
    {"phi-4",
     R"({"hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads":
       10, "intermediate_size": 17920, "vocab_size": 100352, "max_position_embeddings": 16384,
       "rope_theta": 250000, "original_max_position_embeddings": 16384})"},
    {"phi-4-mini",
     R"({"hidden_size": 3072, "num_hidden_layers": 32, "num_attention_heads": 24, "num_key_value_heads":
       8, "intermediate_size": 8192, "vocab_size": 200064, "max_position_embeddings": 131072,
       "tie_word_embeddings": true, "sliding_window": 262144, "partial_rotary_factor": 0.75,
       "original_max_position_embeddings": 4096, "rope_scaling": {"type": "longrope", "short_factor": [1,
       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "long_factor": [1.0, 1.118320672, 1.250641126,
       1.398617824, 1.564103225, 1.74916897, 1.956131817, 2.187582649, 2.446418898, 2.735880826,
       3.059592084, 3.421605075, 3.826451687, 4.279200023, 4.785517845, 5.351743533, 5.984965424,
       6.693110555, 7.485043894, 8.370679318, 9.36110372, 10.4687158, 11.70738129, 13.09260651,
       14.64173252, 16.37415215, 18.31155283, 20.47818807, 22.90118105, 25.61086418, 28.64115884, 32.03,
       32.1, 32.13, 32.23, 32.6, 32.61, 32.64, 32.66, 32.7, 32.71, 32.93, 32.97, 33.28, 33.49, 33.5,
       44.16, 47.77]}})"}};

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
                                              .canonical = canonical_phi3,
                                              .presets = kPhi3Presets};
  return family;
}

}  // namespace tycho
