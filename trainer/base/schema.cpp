// The parts of a schema that do not depend on the type of the config.
#include "trainer/base/schema.h"

#include <cmath>
#include <sstream>

namespace tycho {
namespace {

/// Whole numbers as integers, so that 0 does not print as 0.0.
Json exact(double x) {
  return x == std::floor(x) && std::abs(x) <= 0x1p53 ? Json(static_cast<int64_t>(x)) : Json(x);
}

}  // namespace

void add_number_rules(Json& description, const Rule& rule) {
  if (rule.min) description["min"] = exact(*rule.min);
  if (rule.min && rule.min_exclusive) description["min_exclusive"] = true;
  if (rule.max) description["max"] = exact(*rule.max);
  if (rule.max && rule.max_exclusive) description["max_exclusive"] = true;
  if (rule.multiple_of) description["multiple_of"] = exact(*rule.multiple_of);
}

void add_history(Json& description, const Rule& rule) {
  if (!rule.deprecated.empty()) description["deprecated"] = rule.deprecated;
  for (const FormerName& old : rule.former) {
    Json name = {{"name", old.name}};
    if (!old.since.empty()) name["since"] = old.since;
    description["former"].push_back(std::move(name));
  }
}

std::vector<std::string> accepted_units(const Rule& rule) {
  if (rule.units.empty()) return {"ba", "ep", "sp", "tok", "dur", "s"};
  std::istringstream words(rule.units);
  std::vector<std::string> units;
  for (std::string unit; words >> unit;) units.push_back(unit);
  return units;
}

}  // namespace tycho
