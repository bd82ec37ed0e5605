// Layers are chosen product by product, since q, k and v, or gate and up, are multiplied as one.
#include "trainer/layout/fp8_layers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "trainer/base/field_types.h"
#include "trainer/layout/decoder_layout.h"

namespace tycho {
namespace {

constexpr int64_t kMultiple = 16;  // of GPUs' products of fp8

bool names_layer(const std::string& word, const std::string& layer) {
  return layer.find(word) != std::string::npos;
}
bool is_named(const Fp8Config& fp8, const std::string& layer) {
  return std::any_of(fp8.skip.begin(), fp8.skip.end(),
                     [&](const std::string& word) { return names_layer(word, layer); });
}

/// True where torchao measured no gain on an H100: _auto_filter_for_rowwise and _auto_filter_for_tensorwise.
bool is_small(Fp8Recipe recipe, int64_t outputs, int64_t inputs) {
  if (recipe == Fp8Recipe::kTensorwise) return inputs <= 4096 && outputs <= 1024;
  return outputs <= 2048 || inputs <= 1024 || (outputs <= 4096 && inputs <= 2048);
}

/// Returns why layers that are multiplied together stay bf16; "" if they do not.
std::string reason_for_bf16(const std::vector<LinearLayer>& layers, int64_t outputs, const Fp8Config& fp8) {
  const auto any = [&](const auto& body) { return std::any_of(layers.begin(), layers.end(), body); };
  if (any([&](const LinearLayer& layer) { return is_named(fp8, layer.name); })) return "fp8.skip";
  if (any([](const LinearLayer& layer) {
        return layer.rows % kMultiple != 0 || layer.columns % kMultiple != 0;
      }))
    return fmt::format("a dim is not a multiple of {}", kMultiple);
  return fp8.skip_small && is_small(fp8.recipe, outputs, layers.front().columns) ? "fp8.skip_small" : "";
}

/// Returns "q_proj, k_proj, v_proj".
std::string last_parts(const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  for (const std::string& name : names) parts.push_back(name.substr(name.rfind('.') + 1));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<Fp8Layers> all_layers(const DecoderSpec& spec) {
  std::vector<Fp8Layers> blocks;
  for (int64_t i = 0; i < spec.layers; ++i) blocks.push_back(block_fp8_layers(spec, i));
  return blocks;
}

/// Returns what hinders `tp` ranks from sharing a layer; "" if nothing does.
std::string sharing_problem(const LinearLayer& layer, int64_t tp) {
  const bool cuts_inputs = !layer.in.empty();
  for (const TpCut::Section& section : cuts_inputs ? layer.in : layer.out) {
    const bool equal = section.count % tp == 0 || tp % section.count == 0;
    const int64_t part = std::max(section.count / tp, int64_t{1}) * section.width;
    if (!equal || part % kMultiple != 0)
      return fmt::format(
          "expected parts of {} that are equal on {} ranks and a multiple of {}, got {} {} (parallel.tp = "
          "{}): name the layer in fp8.skip, or choose another parallel.tp",
          layer.name, tp, kMultiple, section.count * section.width, cuts_inputs ? "inputs" : "outputs", tp);
  }
  return "";
}

/// Returns the names of the layers of a block that stay bf16.
std::vector<std::string> kept_names(const Fp8Layers& block) {
  std::vector<std::string> names;
  for (const Bf16Layers& kept : block.kept) names.insert(names.end(), kept.names.begin(), kept.names.end());
  return names;
}

int64_t gpu_bytes(const Fp8Product& product, int64_t tokens) {
  const int64_t in = product.inputs, out = product.all_outputs();
  const int64_t forward = tokens * in + out * in,
                to_input = tokens * out + out * in + (product.outputs.size() > 1 ? 2 * tokens * in : 0),
                to_weight = tokens * (in + out) + 2 * out * in;
  return std::max({forward + 2 * tokens * out, to_input, to_weight});
}

/// Returns the bytes of codes, codes as bf16, and fp32 sums.
int64_t cpu_bytes(const Fp8Product& product, int64_t tokens) {
  const int64_t in = product.inputs, out = product.all_outputs();
  return std::max({3 * (tokens + out) * in + 4 * tokens * out, 3 * (tokens + in) * out + 4 * tokens * in,
                   3 * tokens * (in + out) + 4 * in * out});
}

}  // namespace

int64_t Fp8Product::all_outputs() const {
  return std::accumulate(outputs.begin(), outputs.end(), int64_t{0});
}

Fp8Layers fp8_layers(const UnitSpec& block, const std::vector<LinearLayer>& layers, const Fp8Config& fp8) {
  if (!fp8.is_used()) return {};
  Fp8Layers chosen;
  for (size_t begin = 0; begin < layers.size();) {
    const int view = layer_outputs(block, layers[begin]).view;
    std::vector<LinearLayer> together;
    for (; begin < layers.size() && layer_outputs(block, layers[begin]).view == view; ++begin)
      together.push_back(layers[begin]);
    Fp8Product product = {.view = view,
                          .outputs = {},
                          .inputs = together.front().columns,
                          .recipe = fp8.recipe,
                          .cuts_inputs = !together.front().in.empty(),
                          .recompute = together.front().recompute};
    Bf16Layers kept;
    int64_t named = 0;
    for (const LinearLayer& layer : together) {
      product.outputs.push_back(layer.rows);
      kept.names.push_back(layer.name);
      named += is_named(fp8, layer.name) ? 1 : 0;
    }
    kept.reason = reason_for_bf16(together, product.all_outputs(), fp8);
    kept.named_in_part = named > 0 && named < std::ssize(together);
    if (kept.reason.empty())
      chosen.products.push_back(std::move(product));
    else
      chosen.kept.push_back(std::move(kept));
  }
  return chosen;
}

std::vector<ConfigProblem> fp8_problems(const DecoderSpec& spec, int64_t tp) {
  if (!spec.fp8.is_used()) return {};
  std::vector<ConfigProblem> problems;
  const std::vector<std::string> names = linear_layer_names(spec);
  for (size_t i = 0; i < spec.fp8.skip.size(); ++i) {
    const std::string& word = spec.fp8.skip[i];
    if (word.empty() || (!names_layer(word, spec.names.head) &&
                         std::none_of(names.begin(), names.end(),
                                      [&](const std::string& name) { return names_layer(word, name); })))
      problems.push_back(
          {fmt::format("fp8.skip[{}]", i + 1),
           fmt::format(
               "\"{}\" is part of no linear layer's name; there are {}", word,
               fmt::join(names.begin(), names.begin() + std::min<int64_t>(std::ssize(names), 7), ", "))});
  }
  const std::vector<Fp8Layers> blocks = all_layers(spec);
  for (const Fp8Layers& block : blocks)
    for (const Bf16Layers& kept : block.kept)
      if (kept.named_in_part && problems.empty())
        problems.push_back(
            {"fp8.skip", fmt::format("names some of {}, which are one product: name all of them, or none",
                                     fmt::join(kept.names, ", "))});
  if (problems.empty() && std::all_of(blocks.begin(), blocks.end(),
                                      [](const Fp8Layers& block) { return block.products.empty(); }))
    problems.push_back({"fp8", fmt::format("no linear layer is left for fp8 ({}: {}); remove fp8",
                                           last_parts(blocks.front().kept.front().names),
                                           blocks.front().kept.front().reason)});
  for (int64_t i = 0; i < spec.layers && tp > 1; ++i) {
    const std::vector<std::string> kept = kept_names(blocks[static_cast<size_t>(i)]);
    for (const LinearLayer& layer : linear_layers(spec, i)) {
      const bool is_kept = std::find(kept.begin(), kept.end(), layer.name) != kept.end();
      const std::string problem = is_kept ? "" : sharing_problem(layer, tp);
      if (!problem.empty() && problems.empty()) problems.push_back({"fp8.recipe", problem});
    }
  }
  return problems;
}

Fp8Config named_fp8(const DecoderSpec& whole) {
  Fp8Config named = {.recipe = whole.fp8.recipe, .gather = whole.fp8.gather};
  if (!named.is_used()) return named;
  for (const Fp8Layers& block : all_layers(whole))
    for (const std::string& name : kept_names(block)) named.skip.push_back(name);
  return named;
}

std::string fp8_text(const DecoderSpec& spec) {
  if (!spec.fp8.is_used()) return "";
  int64_t chosen = 0;
  std::map<std::string, std::vector<std::string>> kept;  // by reason
  for (const Fp8Layers& block : all_layers(spec)) {
    for (const Fp8Product& product : block.products) chosen += std::ssize(product.outputs);
    for (const Bf16Layers& layers : block.kept) {
      const std::string parts = last_parts(layers.names);
      std::vector<std::string>& names = kept[layers.reason];
      if (std::find(names.begin(), names.end(), parts) == names.end()) names.push_back(parts);
    }
  }
  std::string text = fmt::format("{} of {} linear layers of the blocks multiply in fp8 ({})", chosen,
                                 linear_layer_names(spec).size(), enum_name(spec.fp8.recipe));
  for (const auto& [reason, names] : kept)
    text += fmt::format("; bf16: {} ({})", fmt::join(names, ", "), reason);
  text += "; the head multiplies in bf16";
  return spec.fp8.gather ? text + "; parallel.dp_shard gathers codes" : text;
}

int64_t fp8_bytes(const DecoderSpec& spec, BatchShape shape, bool on_gpu) {
  int64_t most = 0;
  if (!spec.fp8.is_used()) return most;
  for (const Fp8Layers& block : all_layers(spec))
    for (const Fp8Product& product : block.products)
      most = std::max(most, on_gpu ? gpu_bytes(product, shape.tokens()) : cpu_bytes(product, shape.tokens()));
  return most;
}

}  // namespace tycho
