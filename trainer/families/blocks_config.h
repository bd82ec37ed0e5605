// How the blocks of a model differ from each other: kinds of blocks, and their order.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/fields.h"

namespace tycho {

/// Scales up queries of far positions, because many keys flatten the softmax (Nakanishi 2025,
/// arXiv:2501.19399; Llama 4).
struct TemperatureTuningConfig {
  std::optional<double> attn_scale;
  std::optional<double> floor_scale;

  template <class Visitor>
  void fields(Visitor& v) {
    v("attn_scale", attn_scale,
      "Queries are multiplied by 1 + attn_scale ln(floor((position + 1) / floor_scale) + 1), positions "
      "within their document. Default: 0, or, in a kind of blocks, the model's.",
      at_least(0));
    v("floor_scale", floor_scale,
      "Number of positions after which the factor grows. Default: 8192, or, in a kind of blocks, the "
      "model's.",
      positive);
  }
};

/// Settings of the blocks of one kind. Settings that are not given are the model's.
struct BlockKindConfig {
  std::optional<int64_t> sliding_window;
  bool nope = false;
  TemperatureTuningConfig temperature_tuning;
  std::optional<int64_t> reuse_kv, reuse_kv_x;

  template <class Visitor>
  void fields(Visitor& v) {
    v("sliding_window", sliding_window,
      "Number of keys before its own that a query attends to; -1: all. Default: the model's.", at_least(-1));
    v("nope", nope, "No positions: queries and keys are not rotated, scores have no ALiBi.");
    v("temperature_tuning", temperature_tuning, "Scale up queries at distant positions.");
    v("reuse_kv", reuse_kv,
      "Attend to the keys and values of the block this many before, which may itself reuse another's; such "
      "blocks have only queries (reuse_kv_layer_idx, which counts backwards).",
      positive);
    v("reuse_kv_x", reuse_kv_x,
      "Project keys and values from the input of the block this many before, with their own norm and "
      "matrices (reuse_kv_x_layer_idx, which counts backwards).",
      positive);
  }
};

/// Kinds of blocks and their order. Without an order all blocks have the model's settings.
struct BlocksConfig {
  static constexpr const char* kDefaultKind = "default";
  std::vector<std::string> order;
  std::map<std::string, BlockKindConfig> kinds;

  template <class Visitor>
  void fields(Visitor& v) {
    v("order", order,
      "Kinds of the blocks, first to last, repeated until every layer has one; \"default\": as the model.");
    v("kinds", kinds, "What is different in blocks of each kind, under names you choose.");
  }

  /// Returns the kind of a block, counted from 0. Requires that the order's names are known.
  const BlockKindConfig& kind_of(int64_t block) const {
    static const BlockKindConfig usual;
    if (order.empty()) return usual;
    const std::string& name = order[static_cast<size_t>(block) % order.size()];
    return name == kDefaultKind ? usual : kinds.at(name);
  }
};

}  // namespace tycho
