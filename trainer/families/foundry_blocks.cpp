// LLM Foundry's block_overrides, both ways.
#include "trainer/families/foundry_blocks.h"

#include <fmt/ranges.h>

#include <cmath>

#include "trainer/families/decoder_spec.h"

namespace tycho {
namespace {

constexpr int64_t kMostBlocks = 1 << 14;

HfTable<TemperatureTuningConfig> temperature_table() {
  return {mapped("attn_scale", &TemperatureTuningConfig::attn_scale, at_least(0)),
          mapped("floor_scale", &TemperatureTuningConfig::floor_scale, positive)};
}

/// Maps a reference to an earlier block, which LLM Foundry counts backwards.
HfKey<BlockKindConfig> reuse(const char* name, std::optional<int64_t> BlockKindConfig::*member) {
  const auto read = [=](const JsonPath& place, BlockKindConfig& kind) {
    int64_t relative = 0;
    const size_t problems = place.problems.size();
    read_value(place, {.max = -1}, relative);
    if (place.problems.size() == problems) kind.*member = -relative;
  };
  return {name, read, [=](const BlockKindConfig& kind) -> std::optional<Json> {
            return kind.*member ? Json(-*(kind.*member)) : Json();
          }};
}

Json tuning_json(const TemperatureTuningConfig& tuning, bool whole) {
  Json json = Json::object();
  if (tuning.attn_scale) json["attn_scale"] = *tuning.attn_scale;
  if (const auto& floor = tuning.floor_scale)
    json["floor_scale"] = whole ? Json(static_cast<int64_t>(*floor)) : Json(*floor);
  return json.empty() ? Json() : json;
}

/// Returns true when all floor scales are whole. LLM Foundry lets an integer override only an integer, and
/// its default is one.
bool whole_floor_scales(const MptConfig& model) {
  const auto whole = [](const TemperatureTuningConfig& tuning) {
    const double floor = tuning.floor_scale.value_or(1);
    return floor == std::floor(floor);
  };
  return whole(model.temperature_tuning) &&
         std::all_of(model.blocks.kinds.begin(), model.blocks.kinds.end(),
                     [&](const auto& kind) { return whole(kind.second.temperature_tuning); });
}

/// `whole` writes floor_scale as an integer.
HfTable<BlockKindConfig> attention_table(bool whole = true) {
  const auto read_temperature = [](const JsonPath& place, BlockKindConfig& kind) {
    if (check_object(place, "a table of keys"))
      read_table(place, temperature_table(), kind.temperature_tuning);
  };
  const auto temperature = [=](const BlockKindConfig& kind) -> std::optional<Json> {
    return tuning_json(kind.temperature_tuning, whole);
  };
  return {mapped("sliding_window_size", &BlockKindConfig::sliding_window, at_least(-1)),
          mapped("nope", &BlockKindConfig::nope),
          {"attn_temperature_tuning", read_temperature, temperature},
          reuse("reuse_kv_layer_idx", &BlockKindConfig::reuse_kv),
          reuse("reuse_kv_x_layer_idx", &BlockKindConfig::reuse_kv_x)};
}

/// Reads the keys that blocks may override, and notes others.
void read_kind(const JsonPath& place, BlockKindConfig& kind) {
  if (!check_object(place, "a table with attn_config")) return;
  const auto note_others = [](const JsonPath& at, const std::vector<std::string>& known) {
    for (const auto& [name, value] : at.json.items())
      if (std::find(known.begin(), known.end(), name) == known.end())
        at.problems.push_back({at.child(value, name).path,
                               fmt::format("cannot differ between blocks; LLM Foundry can override {}",
                                           fmt::join(known, ", "))});
  };
  note_others(place, {"attn_config"});
  const auto attention = place.json.find("attn_config");
  if (attention == place.json.end()) return;
  const JsonPath inside = place.child(*attention, "attn_config");
  if (!check_object(inside, "a table of keys")) return;
  std::vector<std::string> known;
  for (const auto& key : attention_table()) {
    known.push_back(key.name);
    const auto found = attention->find(key.name);
    if (found != attention->end()) key.read(inside.child(*found, key.name), kind);
  }
  note_others(inside, known);
}

bool says_nothing(const BlockKindConfig& kind) {
  const TemperatureTuningConfig& tuning = kind.temperature_tuning;
  return !kind.sliding_window && !kind.nope && !kind.reuse_kv && !kind.reuse_kv_x && !tuning.attn_scale &&
         !tuning.floor_scale;
}

/// Returns a kind's tuning without keys that have no effect, and with the keys of a model's tuning that is
/// off.
TemperatureTuningConfig tuning_beside(const TemperatureTuningConfig& all, TemperatureTuningConfig own) {
  const bool all_off = all.attn_scale.value_or(0) == 0;
  const bool off = own.attn_scale ? *own.attn_scale == 0 : all_off;
  if (off) own.floor_scale.reset();
  if (off && all_off) own.attn_scale.reset();
  if (!off && all_off && !own.floor_scale) own.floor_scale = all.floor_scale;
  return own;
}

int64_t read_repeat(const JsonPath& place) {
  int64_t repeat = 1;
  if (const auto found = place.json.find("repeat"); found != place.json.end())
    read_value(place.child(*found, "repeat"), combine({positive, at_most(kMostBlocks)}), repeat);
  return repeat;
}

void append(const JsonPath& place, const std::vector<std::string>& names, int64_t repeat,
            std::vector<std::string>& order) {
  if (std::ssize(order) + std::ssize(names) * repeat > kMostBlocks)
    return place.problems.push_back({place.path, fmt::format("is more than {} blocks", kMostBlocks)});
  for (int64_t i = 0; i < repeat; ++i) order.insert(order.end(), names.begin(), names.end());
}

/// Reads a list of {name, repeat} and {order, repeat} and expands it.
std::vector<std::string> read_order(const JsonPath& place, const Json& overrides) {
  std::vector<std::string> order;
  if (!place.json.is_array()) {
    place.wanted("a list of blocks");
    return order;
  }
  for (size_t i = 0; i < place.json.size(); ++i) {
    const JsonPath item = place.item(place.json[i], i);
    if (!check_object(item, "a table with name or order")) continue;
    check_keys(item, {"name", "order", "repeat"});
    const bool named = item.json.contains("name");
    if (named == item.json.contains("order")) {
      item.wanted("either name or order");
      continue;
    }
    std::vector<std::string> names(1);
    if (named) {
      const JsonPath name = item.child(item.json["name"], "name");
      read_value(name, {}, names[0]);
      if (names[0] != BlocksConfig::kDefaultKind && !overrides.contains(names[0]))
        name.problems.push_back({name.path, fmt::format("\"{}\" is not one of the overrides", names[0])});
    } else {
      names = read_order(item.child(item.json["order"], "order"), overrides);
    }
    append(item, names, read_repeat(item), order);
  }
  return order;
}

/// Returns the shortest prefix whose repetition gives the whole.
std::vector<std::string> shortest_period(const std::vector<std::string>& order) {
  for (size_t length = 1; length < order.size(); ++length)
    if (order.size() % length == 0 &&
        std::equal(order.begin() + static_cast<int64_t>(length), order.end(), order.begin()))
      return {order.begin(), order.begin() + static_cast<int64_t>(length)};
  return order;
}

}  // namespace

void read_temperature_tuning(const JsonPath& place, TemperatureTuningConfig& tuning) {
  if (place.json.is_null() || !check_object(place, "a table of keys")) return;
  read_table(place, temperature_table(), tuning);
}

std::optional<Json> temperature_tuning_json(const MptConfig& model) {
  const bool whole = whole_floor_scales(model);
  TemperatureTuningConfig tuning = model.temperature_tuning;
  if (!whole && !tuning.floor_scale) tuning.floor_scale = BlockSpec().floor_scale;
  const Json json = tuning_json(tuning, whole);
  return json.is_null() ? std::nullopt : std::optional<Json>(json);
}

void read_block_overrides(const JsonPath& place, int64_t layers, const TemperatureTuningConfig& tuning,
                          BlocksConfig& blocks) {
  if (place.json.is_null() || !check_object(place, "a table with order and overrides")) return;
  check_keys(place, {"order", "overrides", "repeat"});
  const auto overrides = place.json.find("overrides"), order = place.json.find("order");
  if (overrides == place.json.end() || order == place.json.end()) return place.wanted("order and overrides");
  const JsonPath kinds = place.child(*overrides, "overrides");
  if (!check_object(kinds, "a table of named overrides")) return;
  for (const auto& [name, json] : overrides->items()) {
    BlockKindConfig& kind = blocks.kinds[name];
    read_kind(kinds.child(json, name), kind);
    kind.temperature_tuning = tuning_beside(tuning, kind.temperature_tuning);
  }
  const JsonPath order_place = place.child(*order, "order");
  const size_t problems = place.problems.size();
  std::vector<std::string> names;
  append(place, read_order(order_place, *overrides), read_repeat(place), names);
  if (place.problems.size() > problems) return;
  if (std::ssize(names) != layers)
    return place.problems.push_back(
        {order_place.path, fmt::format("gives {} blocks, and n_layers is {}", names.size(), layers)});
  for (std::string& name : names)
    if (name != BlocksConfig::kDefaultKind && says_nothing(blocks.kinds.at(name)))
      name = BlocksConfig::kDefaultKind;
  blocks.order = shortest_period(names);
  std::erase_if(blocks.kinds, [&](const auto& kind) {
    return std::find(names.begin(), names.end(), kind.first) == names.end();
  });
  if (blocks.kinds.empty()) blocks.order.clear();
}

std::optional<Json> block_overrides_json(const MptConfig& model) {
  const BlocksConfig& blocks = model.blocks;
  if (blocks.order.empty()) return {};
  Json order = Json::array(), overrides = Json::object();
  for (const std::string& name : blocks.order) {
    if (order.empty() || order.back()["name"] != name)
      order.push_back({{"name", name}, {"repeat", 1}});
    else
      order.back()["repeat"] = order.back()["repeat"].get<int64_t>() + 1;
  }
  for (const auto& [name, kind] : blocks.kinds) {
    Json attention = write_table(attention_table(whole_floor_scales(model)), kind);
    for (const char* key :
         {"sliding_window_size", "attn_temperature_tuning", "reuse_kv_layer_idx", "reuse_kv_x_layer_idx"})
      if (attention[key].is_null()) attention.erase(key);
    if (!kind.nope) attention.erase("nope");
    overrides[name] = {{"attn_config", std::move(attention)}};
  }
  return Json{{"order", std::move(order)},
              {"repeat", model.layers / std::ssize(blocks.order)},
              {"overrides", std::move(overrides)}};
}

}  // namespace tycho
