// Components that occur more than once stand in "$defs" under their namespace.
#include "trainer/recipe/json_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace tycho {
namespace {

const std::vector<std::string> kByteUnitNames = {"B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"};
constexpr const char* kNumber = "([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?";

Json convert(const Json& description, Json& definitions);

/// Returns the schema of an object that has these fields and no others.
Json of_fields(const Json& fields, Json& definitions) {
  Json properties = Json::object(), required = Json::array();
  for (const Json& field : fields) {
    const auto name = field.at("name").get<std::string>();
    Json property = convert(field, definitions);
    property["description"] = field.at("help");
    if (field.contains("default")) property["default"] = field.at("default");
    properties[name] = std::move(property);
    if (field.value("required", false)) required.push_back(name);
  }
  Json object = {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) object["required"] = std::move(required);
  return object;
}

/// Returns the schema of a component's kind. A recipe can define kinds of its own on a base: they have
/// another name, the base's fields, and fields that only the recipe knows.
Json of_kind(const std::string& name, const Json& kind, bool is_own, Json& definitions) {
  Json object = of_fields(kind.at("fields"), definitions);
  object["description"] = kind.at("help");
  object["properties"]["kind"] = is_own ? Json{{"type", "string"}} : Json{{"const", name}};
  if (is_own) {
    object["properties"]["base"] = {{"const", name}};
    object["additionalProperties"] = true;
  }
  return object;
}

/// Adds "if this key has that value, then": tools name the wrong key of the kind that was meant.
void add_case(Json& component, const char* key, const std::string& value, Json then) {
  component["allOf"].push_back({{"if", {{"properties", {{key, {{"const", value}}}}}, {"required", {key}}}},
                                {"then", std::move(then)}});
}

Json of_component(const Json& description, Json& definitions) {
  Json component = {
      {"type", "object"}, {"required", {"kind"}}, {"properties", {{"kind", {{"type", "string"}}}}}};
  std::vector<std::string> bases;
  Json names = Json::array(), own = Json::object();
  for (const auto& [name, kind] : description.at("kinds").items()) {
    names.push_back(name);
    if (kind.value("definable", false)) own[name] = kind;
    add_case(component, "kind", name, of_kind(name, kind, /*is_own=*/false, definitions));
  }
  own.update(description.value("bases", Json::object()));
  for (const auto& [name, kind] : own.items())
    add_case(component, "base", name, of_kind(name, kind, /*is_own=*/true, definitions));
  const Json built_in = {{"properties", {{"kind", {{"enum", names}}}}}};
  if (own.empty())
    component["properties"]["kind"] = {{"enum", std::move(names)}};
  else
    component["anyOf"] = {built_in, {{"required", {"base"}}}};
  return component;
}

/// Returns a reference to the component's definition, which is made when it is first met; the component
/// itself if another one of its namespace was.
Json of_shared_component(const Json& description, Json& definitions) {
  const auto name = description.at("namespace").get<std::string>();
  Json component = of_component(description, definitions);
  if (!definitions.contains(name)) definitions[name] = component;
  if (definitions.at(name) != component) return component;
  return {{"$ref", "#/$defs/" + name}};
}

/// Returns a pattern of a number with one of these units after it. Numbers that may not be negative have no
/// sign.
Json text_with_unit(const Json& description, const std::vector<std::string>& units, bool needs_unit) {
  const bool has_sign = !description.contains("min") || description.at("min") < 0;
  return {{"type", "string"},
          {"pattern", fmt::format("^{}{} *({}){}$", has_sign ? "-?" : "", kNumber, fmt::join(units, "|"),
                                  needs_unit ? "" : "?")}};
}

Json of_number(const char* type, const Json& description) {
  Json number = {{"type", type}};
  const auto bound = [&](const char* from, const char* exclusive, const char* inclusive_name,
                         const char* exclusive_name) {
    if (description.contains(from))
      number[description.contains(exclusive) ? exclusive_name : inclusive_name] = description.at(from);
  };
  bound("min", "min_exclusive", "minimum", "exclusiveMinimum");
  bound("max", "max_exclusive", "maximum", "exclusiveMaximum");
  if (description.contains("multiple_of")) number["multipleOf"] = description.at("multiple_of");
  return number;
}

Json without_null(const Json& description, Json& definitions) {
  const auto type = description.at("type").get<std::string>();
  if (type == "boolean" || type == "string") return {{"type", type}};
  if (type == "integer" || type == "number") return of_number(type.c_str(), description);
  if (type == "duration") {
    auto units = description.at("units").get<std::vector<std::string>>();
    if (units.back() == "s") units.insert(units.end(), {"m", "h"});
    return text_with_unit(description, units, /*needs_unit=*/true);
  }
  if (type == "bytes") return text_with_unit({{"min", 0}}, kByteUnitNames, /*needs_unit=*/false);
  if (type == "enum") return {{"enum", description.at("values")}};
  if (type == "function")
    return of_fields(
        {{{"name", "at"}, {"help", "Place in the recipe."}, {"type", "string"}, {"required", true}},
         {{"name", "hash"}, {"help", "Hash of its text."}, {"type", "string"}, {"required", true}}},
        definitions);
  if (type == "list") {
    Json list = {{"type", "array"}, {"items", convert(description.at("item"), definitions)}};
    if (description.contains("length")) list["minItems"] = list["maxItems"] = description.at("length");
    return list;
  }
  if (type == "map")
    return {{"type", "object"}, {"additionalProperties", convert(description.at("item"), definitions)}};
  if (type == "struct") return of_fields(description.at("fields"), definitions);
  if (type == "component") return of_shared_component(description, definitions);
  return Json::object();  // data: any value
}

Json convert(const Json& description, Json& definitions) {
  Json schema = without_null(description, definitions);
  Json others = Json::array();
  if (description.contains("word")) others.push_back({{"const", description.at("word")}});
  if (description.contains("defines"))  // a function of the recipe in place of a name
    others.push_back({{"type", "object"}, {"required", {"expression", "code"}}});
  if (description.value("optional", false)) others.push_back({{"type", "null"}});
  if (others.empty()) return schema;
  others.insert(others.begin(), std::move(schema));
  return {{"anyOf", std::move(others)}};
}

}  // namespace

Json json_schema(const Json& description, const std::string& title) {
  Json definitions = Json::object();
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
  schema.update(without_null(description, definitions));
  if (!definitions.empty()) schema["$defs"] = std::move(definitions);
  return schema;
}

}  // namespace tycho
