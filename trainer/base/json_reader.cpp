// Reads and checks the values that structs of every kind are made of.
#include "trainer/base/json_reader.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/absent.h"
#include "trainer/base/error.h"
#include "trainer/base/nearest.h"
#include "trainer/base/schema.h"
#include "trainer/base/text/without_place.h"

namespace tycho {
namespace {

constexpr double kMaxExact = 0x1p53;
constexpr size_t kMaxShown = 60;

std::string shown(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMaxShown) text.replace(kMaxShown, std::string::npos, "...");
  return text;
}

/// Appends the rule to a text: "a number > 0 and <= 1, a multiple of 0.5".
std::string with_rule(std::string text, const Rule& rule) {
  if (rule.min) text += fmt::format(" {} {}", rule.min_exclusive ? ">" : ">=", *rule.min);
  if (rule.min && rule.max) text += " and";
  if (rule.max) text += fmt::format(" {} {}", rule.max_exclusive ? "<" : "<=", *rule.max);
  if (rule.multiple_of) text += fmt::format(", a multiple of {}", *rule.multiple_of);
  return text;
}

bool holds(const Rule& rule, double x) {
  if (rule.min && (rule.min_exclusive ? x <= *rule.min : x < *rule.min)) return false;
  if (rule.max && (rule.max_exclusive ? x >= *rule.max : x > *rule.max)) return false;
  return !rule.multiple_of || std::fmod(x, *rule.multiple_of) == 0;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

JsonPath JsonPath::child(const Json& value, const std::string& name) const {
  return {value, path.empty() ? name : path + "." + name, problems};
}

JsonPath JsonPath::item(const Json& value, size_t index) const {
  return {value, path + "[" + std::to_string(index + 1) + "]", problems};
}

void JsonPath::wanted(const std::string& wanted) const {
  problems.push_back({path, "expected " + wanted + ", got " + shown(json)});
}

void read_value(const JsonPath& place, const Rule&, bool& out) {
  if (!place.json.is_boolean()) return place.wanted("true or false");
  out = place.json.get<bool>();
}

void read_value(const JsonPath& place, const Rule& rule, int64_t& out) {
  const double x = place.json.is_number() ? place.json.get<double>() : NAN;
  const bool exact = x == std::floor(x) && std::abs(x) <= kMaxExact;
  if (!exact || !holds(rule, x)) return place.wanted(with_rule("a whole number", rule));
  out = static_cast<int64_t>(x);
}

void read_value(const JsonPath& place, const Rule& rule, double& out) {
  const double x = place.json.is_number() ? place.json.get<double>() : NAN;
  if (!std::isfinite(x) || !holds(rule, x)) return place.wanted(with_rule("a number", rule));
  out = x;
}

void read_value(const JsonPath& place, const Rule& rule, NumberOrAuto& out) {
  out.is_auto = place.json == NumberOrAuto::kAuto;
  if (!out.is_auto) read_value(place, rule, out.value);
}

void read_value(const JsonPath& place, const Rule&, std::string& out) {
  if (!place.json.is_string()) return place.wanted("text");
  out = place.json.get<std::string>();
}

void read_value(const JsonPath& place, const Rule& rule, Duration& out) {
  const std::vector<std::string> units = accepted_units(rule);
  const std::string wanted =
      with_rule("a duration", rule) + " in " + joined(units) + ", such as \"1" + units[0] + "\"";
  if (!place.json.is_string()) return place.wanted(wanted);
  try {
    const Duration duration = Duration::parse(place.json.get<std::string>());
    const bool accepted = std::find(units.begin(), units.end(), unit_name(duration.unit)) != units.end();
    if (!accepted || !holds(rule, duration.value)) return place.wanted(wanted);
    out = duration;
  } catch (const Error&) {
    place.wanted(wanted);
  }
}

void read_value(const JsonPath& place, const Rule& rule, DurationOrAuto& out) {
  out.is_auto = place.json == DurationOrAuto::kAuto;
  if (!out.is_auto) read_value(place, rule, static_cast<Duration&>(out));
}

void read_value(const JsonPath& place, const Rule& rule, Bytes& out) {
  try {
    const Bytes bytes = place.json.is_string() ? Bytes::parse(place.json.get<std::string>()) : Bytes{-1};
    if (bytes.value < 0 || !holds(rule, static_cast<double>(bytes.value))) {
      return place.wanted(with_rule("a size such as \"64MiB\"", rule));
    }
    out = bytes;
  } catch (const Error& error) {
    place.problems.push_back({place.path, without_place(error.what())});
  }
}

void read_value(const JsonPath& place, const Rule&, FunctionRef& out) {
  if (!is_function_ref(place.json)) return place.wanted("a function of the recipe");
  std::string at, hash;
  read_value(place.child(place.json.at("at"), "at"), {}, at);
  read_value(place.child(place.json.at("hash"), "hash"), {}, hash);
  out = {std::move(at), std::move(hash)};
}

void read_value(const JsonPath& place, const Rule&, Json& out) { out = place.json; }

int read_name(const JsonPath& place, const std::vector<std::string>& names) {
  if (!place.json.is_string()) {
    place.wanted("one of " + joined(names));
    return -1;
  }
  const std::string given = place.json.get<std::string>();
  const auto found = std::find(names.begin(), names.end(), given);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  place.wanted("one of " + joined(names));
  const std::string absent = absent_feature(given);
  place.problems.back().message += absent.empty() ? did_you_mean(given, names) : "; " + absent;
  return -1;
}

bool check_object(const JsonPath& place, const char* what) {
  if (!place.json.is_object()) place.wanted(what);
  return place.json.is_object();
}

void check_keys(const JsonPath& place, const std::vector<std::string>& known) {
  for (const auto& [key, value] : place.json.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string absent = absent_feature(key);
    const std::string hint = absent.empty() ? did_you_mean(key, known) : "; " + absent;
    place.problems.push_back({place.child(value, key).path,
                              "unknown key" + (hint.empty() ? "; known here: " + joined(known) : hint)});
  }
}

bool is_defined_kind(const Json& object, const std::vector<std::string>& kinds) {
  const auto kind = object.find("kind");
  return object.contains("base") && kind != object.end() && kind->is_string() &&
         std::find(kinds.begin(), kinds.end(), *kind) == kinds.end();
}

Json without_keys(Json object, const std::vector<std::string>& names, const std::vector<std::string>& more) {
  for (const auto& list : {names, more})
    for (const std::string& name : list) object.erase(name);
  return object;
}

const Json* JsonReader::find(const char* name, const Rule& rule) {
  names_.push_back(name);
  if (const auto found = place_.json.find(name); found != place_.json.end()) return &*found;
  if (rule.required) place_.problems.push_back({place_.child(place_.json, name).path, "is required: set it"});
  return nullptr;
}

}  // namespace tycho
