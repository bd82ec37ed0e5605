// The parts of a schema that do not depend on the type of the config.
#include "trainer/base/schema.h"

#include <cmath>
#include <sstream>

namespace tycho {
namespace {

/// Returns whole numbers as integers, so that 0 does not print as 0.0.
Json exact(double x) {
  return x == std::floor(x) && std::abs(x) <= 0x1p53 ? Json(static_cast<int64_t>(x)) : Json(x);
}

/// Adds the rules of a number to its description: "min" to "multiple_of".
void add_number_rules(Json& description, const Rule& rule) {
  if (rule.min) description["min"] = exact(*rule.min);
  if (rule.min && rule.min_exclusive) description["min_exclusive"] = true;
  if (rule.max) description["max"] = exact(*rule.max);
  if (rule.max && rule.max_exclusive) description["max_exclusive"] = true;
  if (rule.multiple_of) description["multiple_of"] = exact(*rule.multiple_of);
}

}  // namespace

std::vector<std::string> accepted_units(const Rule& rule) {
  if (*rule.units == 0) return {"ba", "ep", "sp", "tok", "dur", "s"};
  std::istringstream words(rule.units);
  std::vector<std::string> units;
  for (std::string unit; words >> unit;) units.push_back(unit);
  return units;
}

Json number_description(const char* type, const Rule& rule) {
  Json description = {{"type", type}};
  add_number_rules(description, rule);
  if (description["type"] == "duration") description["units"] = accepted_units(rule);
  return description;
}

Json number_or_auto_description(const char* type, const Rule& rule) {
  Json description = number_description(type, rule);
  description["word"] = NumberOrAuto::kAuto;
  return description;
}

Json list_description(Json item, size_t length) {
  Json description = {{"type", "list"}, {"item", std::move(item)}};
  if (length > 0) description["length"] = length;
  return description;
}

Json simple_description(const char* type) { return {{"type", type}}; }

Json optional_description(Json description) {
  description["optional"] = true;
  return description;
}

Json map_description(Json item) { return {{"type", "map"}, {"item", std::move(item)}}; }

Json enum_description(const std::vector<std::string>& names) { return {{"type", "enum"}, {"values", names}}; }

Json struct_description(Json fields) { return {{"type", "struct"}, {"fields", std::move(fields)}}; }

Json kind_description(const char* help, Json of_struct) {
  Json description = {{"help", help}};
  description.update(of_struct);
  return description;
}

Json component_description(const char* name_space, Json kinds, Json bases) {
  const std::string usual = kinds.begin().key();  // the first that was declared
  Json description = {
      {"type", "component"}, {"namespace", name_space}, {"usual", usual}, {"kinds", std::move(kinds)}};
  if (!bases.empty()) description["bases"] = std::move(bases);
  return description;
}

void SchemaWriter::add(const char* name, const char* help, const Rule& rule, const Json& type, Json usual) {
  Json description = {{"name", name}, {"help", help}};
  description.update(type);
  if (rule.required) {
    description["required"] = true;
  } else {
    description["default"] = std::move(usual);
  }
  fields_.push_back(std::move(description));
}

}  // namespace tycho
