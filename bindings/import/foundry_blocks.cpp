// LLM Foundry's block_overrides -> model.blocks.
#include <fmt/format.h>

#include <cstdlib>

#include "bindings/import/systems.h"
#include "trainer/base/json_writer.h"
#include "trainer/families/foundry_blocks.h"

namespace tycho {
namespace {

/// Returns a node as JSON with its references resolved.
Json json_of(Mapper& mapper, const DocNode& node) {
  if (node.is_list()) {
    Json list = Json::array();
    for (const DocNode& item : node.items) list.push_back(json_of(mapper, item));
    return list;
  }
  if (node.is_map()) {
    Json map = Json::object();
    for (const auto& [key, value] : node.entries) map[key] = json_of(mapper, value);
    return map;
  }
  const DocScalar scalar = mapper.value(&node);
  switch (scalar.kind) {
    case DocScalar::Kind::kNull: return {};
    case DocScalar::Kind::kBool: return scalar.text == "true";
    case DocScalar::Kind::kInteger: return std::strtoll(scalar.text.c_str(), nullptr, 10);
    case DocScalar::Kind::kNumber: return std::strtod(scalar.text.c_str(), nullptr);
    case DocScalar::Kind::kText: break;
  }
  return scalar.text;
}

/// Writes { "a", "b" }, with a few names on each line.
void write_order(LuaWriter& out, const std::vector<std::string>& order, const SourceLocation& place) {
  constexpr size_t kPerLine = 6;
  const auto names = [&](size_t first, size_t last) {
    std::string text;
    for (size_t i = first; i < std::min(last, order.size()); ++i)
      text += (text.empty() ? "" : ", ") + lua_quoted(order[i]);
    return text;
  };
  if (order.size() <= kPerLine) return out.write("order = { " + names(0, kPerLine) + " },", 0, "", place);
  out.open("order = {", 0, place);
  for (size_t i = 0; i < order.size(); i += kPerLine) out.write(names(i, i + kPerLine) + ",", 0, "", place);
  out.close("},");
}

/// Returns the node at a problem's path: "a.b[2]" is a.b.1 in the document, where lists count from 0.
const DocNode* node_at(const DocNode& root, const std::string& path) {
  std::string dotted;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '[') {
      dotted += path[i];
      continue;
    }
    const size_t end = path.find(']', i);
    dotted += fmt::format(".{}", std::strtoll(path.c_str() + i + 1, nullptr, 10) - 1);
    i = end;
  }
  return root.at(dotted);
}

void map_blocks(Mapper& mapper, const DocEntry& entry) {
  if (entry.node.is_scalar() && mapper.is_null(&entry.node))
    return mapper.remark(entry, "all blocks are the same");
  std::vector<ConfigProblem> problems;
  MptConfig model;
  if (const DocNode* layers = mapper.root().at("model.n_layers"))
    model.layers = std::strtoll(mapper.text_of(layers).c_str(), nullptr, 10);
  std::vector<ConfigProblem> told;  // problems reported by the row of the key itself
  if (const DocNode* tuning = mapper.root().at("model.attn_config.attn_temperature_tuning"))
    read_temperature_tuning({json_of(mapper, *tuning), "", told}, model.temperature_tuning);
  BlocksConfig blocks;
  const Json json = json_of(mapper, entry.node);
  read_block_overrides({json, entry.path, problems}, model.layers, model.temperature_tuning, blocks);
  for (const auto& [path, message] : problems) {
    const DocNode* node = node_at(mapper.root(), path);
    mapper.problem({path, node == nullptr ? entry.node : *node}, message);
  }
  if (!problems.empty()) return;
  if (blocks.order.empty()) return mapper.remark(entry, "all blocks are the same");
  LuaWriter& out = mapper.out();
  out.comments_before(entry.node.line);
  const SourceLocation place = entry.node.place();
  out.open("blocks = {", entry.node.line, place);
  write_order(out, blocks.order, place);
  out.open("kinds = {", 0, place);
  for (const auto& [name, kind] : blocks.kinds) {
    const std::string fields = lua_fields(to_json(kind), to_json(BlockKindConfig()));
    out.write(fmt::format("{} = {{ {} }},", lua_key(name), fields), 0, "", place);
  }
  out.close("},");
  out.close("},");
}

}  // namespace

Row foundry_blocks_row() { return by("block_overrides", map_blocks); }

}  // namespace tycho
