// Makes the units of a decoder.
#include "trainer/layout/decoder_layout.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "trainer/base/nearest.h"
#include "trainer/base/regex.h"
#include "trainer/layout/adapters.h"

namespace tycho {
namespace {

const Init kOnes = {Init::Kind::kOnes, 0};
const Init kZeros = {Init::Kind::kZeros, 0};

/// Returns the initial weight of a norm, which multiplies by 1.
Init unit_weight(const NormSpec& norm) { return norm.weight_offset == 0 ? kOnes : kZeros; }

using Sections = std::vector<TpCut::Section>;

int64_t size_of(const Sections& sections) {
  int64_t size = 0;
  for (const TpCut::Section& section : sections) size += section.count * section.width;
  return size;
}

/// Unit of a block, and the views of its parts.
struct BlockUnit {
  UnitSpec unit;
  BlockParams at;
  std::vector<LinearLayer> layers;
};

class BlockBuilder {
 public:
  BlockBuilder(const DecoderSpec& spec, int64_t layer)
      : s_(spec), reuses_kv_(spec.reuses_kv(layer)), reuses_x_(spec.reuses_x(layer)), init_(spec.init) {
    built_.unit.name = fmt::format("{}{}", spec.names.block, layer);
    if (!init_.by_depth) return;
    const double divisor = std::sqrt(2.0 * static_cast<double>(layer + 1));
    for (Init* init : {&init_.out, &init_.up, &init_.down}) init->scale /= divisor;
  }

  BlockUnit build() {
    BlockParams& at = built_.at;
    if (s_.norms_before()) norm(s_.names.norm1, at.norm1_weight, at.norm1_bias, s_.width, s_.norm);
    attention();
    if (s_.norms_after())
      norm(s_.names.norm1_after, at.norm1_after_weight, at.norm1_after_bias, s_.width, s_.norm);
    if (s_.norms_before()) norm(s_.names.norm2, at.norm2_weight, at.norm2_bias, s_.width, s_.norm);
    feed_forward();
    if (s_.norms_after())
      norm(s_.names.norm2_after, at.norm2_after_weight, at.norm2_after_bias, s_.width, s_.norm);
    place_stacks();
    built_.unit.base = s_.lora.is_used();
    place_adapters();
    fp8_ = fp8_layers(built_.unit, built_.layers, s_.fp8);
    for (Fp8Product& product : fp8_.products) {
      product.factors = num_views() + 2 * static_cast<int>(at.adapters.size()) + product.view;
      product.cast_along = product.view == at.down_weight
                               ? !s_.ffn.activation.is_defined()
                               : s_.norms_before() && (product.view == at.up_weight ||
                                                       (product.view == at.qkv_weight && !reuses_x_));
      for (const LinearLayer& layer : built_.layers)
        if (s_.fp8.gather && layer_outputs(built_.unit, layer).view == product.view)
          built_.unit.params[static_cast<size_t>(layer.param)].coded = true;
    }
    built_.at.fp8 = fp8_.products;
    return std::move(built_);
  }
  /// Requires build().
  const Fp8Layers& fp8() const { return fp8_; }

 private:
  int add(const std::string& name, Shape shape, Init init, bool decay, TpCut tp) {
    built_.unit.params.push_back({.name = full_name(name),
                                  .shape = std::move(shape),
                                  .init = init,
                                  .decay = decay,
                                  .tp = std::move(tp)});
    return num_params() - 1;
  }
  int num_params() const { return static_cast<int>(built_.unit.params.size()); }
  int num_views() const { return num_params() + static_cast<int>(built_.unit.stacks.size()); }
  std::string full_name(const std::string& name) const {
    return fmt::format("{}.{}", built_.unit.name, name);
  }
  /// Adds a matrix from the whole stream to sections of heads or hidden features: [sections, width], or
  /// [width, sections].
  int matrix(const std::string& name, const Sections& out, Init init) {
    const int64_t rows = size_of(out);
    built_.layers.push_back({full_name(name), num_params(), s_.width, rows, {}, out});
    return add(name + ".weight", s_.in_out ? Shape{s_.width, rows} : Shape{rows, s_.width}, init, true,
               {.sections = out, .dim = s_.in_out ? 1 : 0});
  }
  /// Adds a matrix from sections back to the stream: [width, sections], or [sections, width].
  int matrix_back(const std::string& name, const Sections& in, Init init, int64_t first_column) {
    const int64_t columns = size_of(in);
    built_.layers.push_back({full_name(name), num_params(), columns, s_.width, in, {}, first_column});
    return add(name + ".weight", s_.in_out ? Shape{columns, s_.width} : Shape{s_.width, columns}, init, true,
               {.sections = in, .dim = s_.in_out ? 0 : 1});
  }
  int bias(const std::string& name, const Sections& out) {
    return add(name + ".bias", {size_of(out)}, bias_init(s_.width), false, {.sections = out});
  }
  /// Adds a bias that is added after the shares of all ranks have been summed.
  int bias_back(const std::string& name, const Sections& in) {
    return add(name + ".bias", {s_.width}, bias_init(size_of(in)), false, {});
  }
  Init bias_init(int64_t fan_in) const {
    const Init drawn = {Init::Kind::kUniform, 1 / std::sqrt(static_cast<double>(fan_in))};
    return init_.draws_biases ? drawn : kZeros;
  }
  void norm(const std::string& name, int& weight, int& norm_bias, int64_t width, const NormSpec& spec,
            TpCut tp = {.sections = {}, .gradient = TpCut::Gradient::kOfTokens}) {
    weight = add(name + ".weight", {width}, unit_weight(spec), false, tp);
    if (spec.bias) norm_bias = add(name + ".bias", {width}, kZeros, false, tp);
  }
  /// Adds a norm of all heads together, or of each head.
  void head_norm(const std::string& name, int& weight, int& norm_bias, const Sections& heads) {
    const bool each = s_.attention.qk_norm == QkNorm::kPerHead;
    const TpCut tp =
        each ? TpCut{.sections = {}, .gradient = TpCut::Gradient::kOfHeads} : TpCut{.sections = heads};
    norm(name, weight, norm_bias, each ? s_.attention.head_dim : size_of(heads), s_.attention.qk, tp);
  }
  void attention() {
    const TpCut::Section heads = {s_.attention.heads, s_.attention.head_dim},
                         kv_heads = {s_.attention.kv_heads, s_.attention.head_dim};
    const Sections q = {heads}, kv = {kv_heads}, qkv = {heads, kv_heads, kv_heads};
    const DecoderNames& n = s_.names;
    if (reuses_kv_) {
      built_.at.qkv_weight = matrix(n.q_alone, q, init_.qkv);
      if (s_.attention.qkv_bias) built_.at.qkv_bias = bias(n.q_alone, q);
    } else if (n.k.empty()) {
      built_.at.qkv_weight = matrix(n.q, qkv, init_.qkv);
      if (s_.attention.qkv_bias) built_.at.qkv_bias = bias(n.q, qkv);
    } else if (reuses_x_) {
      built_.at.qkv_weight = matrix(n.q, q, init_.qkv);
      stacks_.push_back({&built_.at.kv_weight, matrix(n.k, kv, init_.qkv), 2});
      matrix(n.v, kv, init_.qkv);
      if (s_.attention.qkv_bias) {
        built_.at.qkv_bias = bias(n.q, q);
        stacks_.push_back({&built_.at.kv_bias, bias(n.k, kv), 2});
        bias(n.v, kv);
      }
    } else {
      stacks_.push_back({&built_.at.qkv_weight, matrix(n.q, q, init_.qkv), 3});
      matrix(n.k, kv, init_.qkv);
      matrix(n.v, kv, init_.qkv);
      if (s_.attention.qkv_bias) {
        stacks_.push_back({&built_.at.qkv_bias, bias(n.q, q), 3});
        bias(n.k, kv);
        bias(n.v, kv);
      }
    }
    if (s_.attention.qk_norm != QkNorm::kNone) {
      head_norm(n.q_norm, built_.at.q_norm_weight, built_.at.q_norm_bias, q);
      if (!reuses_kv_) head_norm(n.k_norm, built_.at.k_norm_weight, built_.at.k_norm_bias, kv);
    }
    built_.at.out_weight = matrix_back(n.out, q, init_.out, s_.attention.first_head * s_.attention.head_dim);
    if (s_.attention.out_bias) built_.at.out_bias = bias_back(n.out, q);
  }

  void feed_forward() {
    const DecoderNames& n = s_.names;
    const Sections hidden = {{s_.ffn.width, 1}};
    const size_t first = built_.layers.size();
    if (s_.ffn.gated && n.up.empty()) {
      const Sections both = {hidden.front(), hidden.front()};
      built_.at.up_weight = matrix(n.gate, both, init_.gate);
      if (s_.ffn.bias) built_.at.up_bias = bias(n.gate, both);
    } else if (s_.ffn.gated) {
      stacks_.push_back({&built_.at.up_weight, matrix(n.gate, hidden, init_.gate), 2});
      matrix(n.up, hidden, init_.up);
      if (s_.ffn.bias) {
        stacks_.push_back({&built_.at.up_bias, bias(n.gate, hidden), 2});
        bias(n.up, hidden);
      }
    } else {
      built_.at.up_weight = matrix(n.up, hidden, init_.up);
      if (s_.ffn.bias) built_.at.up_bias = bias(n.up, hidden);
    }
    for (size_t i = first; i < built_.layers.size(); ++i) built_.layers[i].recompute = Recompute::kSelective;
    built_.at.down_weight = matrix_back(n.down, hidden, init_.down, s_.ffn.first_hidden);
    if (!s_.norms_after()) built_.layers.back().recompute = Recompute::kNone;  // only such a norm reads it
    if (s_.ffn.bias) built_.at.down_bias = bias_back(n.down, hidden);
  }

  /// Assigns the views of stacked matrices, which follow all parameters.
  void place_stacks() {
    for (const auto& [index, first, count] : stacks_) {
      *index = static_cast<int>(built_.unit.params.size() + built_.unit.stacks.size());
      built_.unit.stacks.push_back({first, count});
    }
  }

  /// Assigns views of adapters, which follow the block's own views.
  void place_adapters() {
    int view = num_views();
    for (const LinearLayer& layer : adapted_layers(built_.layers, s_.lora)) {
      const LayerOutputs outputs = layer_outputs(built_.unit, layer);
      built_.at.adapters.push_back({.weight = outputs.view,
                                    .a = view,
                                    .b = view + 1,
                                    .first = outputs.first,
                                    .rows = layer.rows,
                                    .columns = layer.columns,
                                    .first_column = layer.first_column});
      view += 2;
    }
    built_.at.adapter_scale = s_.lora.is_used() ? s_.lora.scale() : 0;
  }

  struct PendingStack {
    int* index;
    int first, count;
  };
  const DecoderSpec& s_;
  bool reuses_kv_, reuses_x_;
  DecoderInit init_;  // init of this block
  BlockUnit built_;
  Fp8Layers fp8_;
  std::vector<PendingStack> stacks_;
};

ParamSpec vocabulary_matrix(const DecoderSpec& s, const std::string& name, Init init, bool gives_logits) {
  return {.name = name + ".weight",
          .shape = {s.vocab_size, s.width},
          .init = init,
          .tp = {.sections = {{s.vocab_size, 1}}},
          .gives_logits = gives_logits};
}

UnitSpec embedding_unit(const DecoderSpec& s) {
  UnitSpec unit{.name = s.names.embedding};
  unit.params.push_back(vocabulary_matrix(s, s.names.embedding, s.init.embedding, s.tied));
  if (s.positions.learned > 0)
    unit.params.push_back({.name = s.names.positions + ".weight",
                           .shape = {s.positions.learned, s.width},
                           .init = s.init.positions});
  return unit;
}

UnitSpec head_unit(const DecoderSpec& s) {
  UnitSpec unit{.name = s.names.head};
  const auto norm = [&](const char* name, Init init) {
    unit.params.push_back({.name = s.names.final_norm + name,
                           .shape = {s.width},
                           .init = init,
                           .decay = false,
                           .tp = {.sections = {}, .gradient = TpCut::Gradient::kOfTokens}});
  };
  norm(".weight", unit_weight(s.norm));
  if (s.norm.bias) norm(".bias", kZeros);
  if (!s.tied) unit.params.push_back(vocabulary_matrix(s, s.names.head, s.init.head, true));
  return unit;
}

/// Adds each block's adapters as a unit; marks the model's own units as their base.
void add_adapters(const DecoderSpec& s, std::vector<UnitSpec>& units) {
  for (UnitSpec& unit : units) unit.base = true;
  for (int64_t i = 0; i < s.layers; ++i) {
    const BlockUnit block = BlockBuilder(s, i).build();
    const std::vector<LinearLayer> adapted = adapted_layers(block.layers, s.lora);
    if (!adapted.empty())
      units.push_back(adapter_unit(block.unit.name, static_cast<int>(i) + 1, adapted, s.lora.rank));
  }
}

}  // namespace

BlockParams block_params(const DecoderSpec& spec, int64_t block) {
  return BlockBuilder(spec, block).build().at;
}

Fp8Layers block_fp8_layers(const DecoderSpec& spec, int64_t block) {
  BlockBuilder builder(spec, block);
  builder.build();
  return builder.fp8();
}

HeadParamIndex head_params(const DecoderSpec& spec) {
  HeadParamIndex index;
  if (spec.norm.bias) index.norm_bias = 1;
  if (!spec.tied) index.output = spec.norm.bias ? 2 : 1;
  return index;
}

ModelLayout decoder_layout(const DecoderSpec& s) {
  ModelLayout layout;
  layout.num_blocks = s.layers;
  layout.attention_width = s.attention.width();
  layout.width = s.width;
  layout.vocab_size = s.vocab_size;
  layout.tied = s.tied;
  layout.units.push_back(embedding_unit(s));
  for (int64_t i = 0; i < s.layers; ++i) layout.units.push_back(BlockBuilder(s, i).build().unit);
  layout.units.push_back(head_unit(s));
  // The look-up is not a product; a tied table takes part in one as the head's matrix.
  layout.num_matmul_params = layout.num_params() - (s.tied ? 0 : s.vocab_size * s.width);
  if (s.lora.is_used()) add_adapters(s, layout.units);
  return layout;
}

std::vector<LinearLayer> linear_layers(const DecoderSpec& spec, int64_t block) {
  return BlockBuilder(spec, block).build().layers;
}

std::vector<std::string> linear_layer_names(const DecoderSpec& s) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < s.layers; ++i)
    for (const LinearLayer& layer : linear_layers(s, i)) names.push_back(layer.name);
  return names;
}

std::vector<ConfigProblem> adapter_problems(const DecoderSpec& s) {
  if (s.lora.targets.empty()) return {};
  const std::vector<std::string> names = linear_layer_names(s);
  std::vector<std::string> words;
  for (const std::string& name : names) {
    const std::string word = name.substr(name.rfind('.') + 1);
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  std::vector<ConfigProblem> problems;
  for (size_t i = 0; i < s.lora.targets.size(); ++i) {
    const std::string& target = s.lora.targets[i];
    const std::string path = fmt::format("lora.targets[{}]", i + 1);
    if (const Regex given(target); !given.problem().empty()) {
      problems.push_back(
          {path, fmt::format("\"{}\" is not a regular expression: {}", target, given.problem())});
      continue;
    }
    const Regex pattern(target_pattern(target));
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return pattern.is_found_in(name); }))
      problems.push_back({path, fmt::format("\"{}\" matches no linear layer of a block; there are {}{}",
                                            target, fmt::join(words, ", "), did_you_mean(target, words))});
  }
  return problems;
}

}  // namespace tycho
