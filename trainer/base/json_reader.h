// Reads config structs from JSON and reports everything that is wrong with it at once: types, units, ranges,
// unknown keys with the nearest known ones, missing required ones. Absent keys keep their defaults.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/bytes.h"
#include "trainer/base/config_problems.h"
#include "trainer/base/defined_kind.h"
#include "trainer/base/duration.h"
#include "trainer/base/field_types.h"
#include "trainer/base/fields.h"
#include "trainer/base/function_ref.h"
#include "trainer/base/json.h"

namespace tycho {

/// A value in the document, its dotted path, and the list that collects problems.
struct JsonPath {
  const Json& json;
  std::string path;
  std::vector<ConfigProblem>& problems;

  JsonPath child(const Json& value, const std::string& name) const;
  /// `index` from 0; the path counts from 1.
  JsonPath item(const Json& value, size_t index) const;
  /// Adds the problem "expected <wanted>, got <the value>".
  void wanted(const std::string& wanted) const;
};

// Each overload reads one value and checks its rule. On a problem it adds the problem and leaves `out`
// unchanged.
void read_value(const JsonPath& place, const Rule& rule, bool& out);
void read_value(const JsonPath& place, const Rule& rule, int64_t& out);
void read_value(const JsonPath& place, const Rule& rule, double& out);
void read_value(const JsonPath& place, const Rule& rule, NumberOrAuto& out);
void read_value(const JsonPath& place, const Rule& rule, std::string& out);
void read_value(const JsonPath& place, const Rule& rule, Duration& out);
void read_value(const JsonPath& place, const Rule& rule, DurationOrAuto& out);
void read_value(const JsonPath& place, const Rule& rule, Bytes& out);
void read_value(const JsonPath& place, const Rule& rule, FunctionRef& out);
void read_value(const JsonPath& place, const Rule& rule, Json& out);

/// Returns the index of the value in `names`, or -1 after adding a problem.
int read_name(const JsonPath& place, const std::vector<std::string>& names);
/// Returns true when the value is an object; otherwise adds a problem that says `what` was expected.
bool check_object(const JsonPath& place, const char* what);
/// Adds a problem for every key of the object that is not in `known`.
void check_keys(const JsonPath& place, const std::vector<std::string>& known);
/// Returns true when the object has a base, and a kind that is none of `kinds`.
bool is_defined_kind(const Json& object, const std::vector<std::string>& kinds);
/// Returns the object without the keys of both lists.
Json without_keys(Json object, const std::vector<std::string>& names, const std::vector<std::string>& more);

template <class T>
void read_value(const JsonPath& place, const Rule& rule, T& out);

/// Reads every visited field from an object.
class JsonReader : public FieldVisitor<JsonReader> {
 public:
  explicit JsonReader(const JsonPath& place) : place_(place) {}

  template <class T>
  void field(const char* name, T& member, const char*, const Rule& rule) {
    if (const Json* found = find(name, rule)) read_value(place_.child(*found, name), rule, member);
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  /// Returns the value of a field; nullptr when it is absent, and adds a problem when it is required.
  const Json* find(const char* name, const Rule& rule);

  const JsonPath& place_;
  std::vector<std::string> names_;
};

/// Reads the fields of a struct from an object that may also have the keys in `other_keys`.
template <FieldStruct T>
void read_fields(const JsonPath& place, T& out, std::vector<std::string> other_keys = {}) {
  JsonReader reader(place);
  out.fields(reader);
  other_keys.insert(other_keys.end(), reader.names().begin(), reader.names().end());
  check_keys(place, other_keys);
}

/// Reads a kind that the recipe defines: the fields of its base, and all other keys as its values.
template <CanBeDefined Kind>
void read_defined(const JsonPath& place, Kind& out) {
  JsonReader reader(place);
  out.fields(reader);
  out.defined = place.json.at("kind").get<std::string>();
  out.values = without_keys(place.json, reader.names(), {"kind", "base"});
}

template <Component T>
void read_component(const JsonPath& place, T& out) {
  std::vector<std::string> kinds, bases;
  for_each_kind(out.value, [&]<class Kind>(const Kind&) {
    if constexpr (!OnlyBase<Kind>) kinds.push_back(Kind::kKind);
    if constexpr (CanBeDefined<Kind>) bases.push_back(Kind::kKind);
  });
  if (!check_object(place, "a component with its kind")) return;
  const bool is_defined = !bases.empty() && is_defined_kind(place.json, kinds);
  const std::string key = is_defined ? "base" : "kind";
  const auto found = place.json.find(key);
  const Json given = found == place.json.end() ? Json(nullptr) : *found;
  if (read_name(place.child(given, key), is_defined ? bases : kinds) < 0) return;
  for_each_kind(out.value, [&]<class Kind>(Kind&& value) {
    if (given != Kind::kKind) return;
    if constexpr (CanBeDefined<Kind>)
      if (is_defined) read_defined(place, value);
    if (!is_defined) read_fields(place, value, {"kind"});
    out.value = value;
  });
}

template <ListField T>
void read_list(const JsonPath& place, const Rule& rule, T& out) {
  constexpr size_t kLength = fixed_length<T>;
  if (!place.json.is_array() || (kLength > 0 && place.json.size() != kLength)) {
    return place.wanted(kLength > 0 ? "a list of " + std::to_string(kLength) + " values" : "a list");
  }
  T list = {};
  if constexpr (kLength == 0) list.resize(place.json.size());
  for (size_t i = 0; i < list.size(); ++i) read_value(place.item(place.json[i], i), rule, list[i]);
  out = std::move(list);
}

template <class T>
void read_value(const JsonPath& place, const Rule& rule, T& out) {
  if constexpr (Component<T>) {
    read_component(place, out);
  } else if constexpr (FieldStruct<T>) {
    if (check_object(place, "a table of fields")) read_fields(place, out);
  } else if constexpr (OptionalField<T>) {
    if (place.json.is_null()) {
      out.reset();
    } else {
      typename T::value_type value = {};
      read_value(place, rule, value);
      out = value;
    }
  } else if constexpr (ListField<T>) {
    read_list(place, rule, out);
  } else if constexpr (MapField<T>) {
    if (!check_object(place, "a table of named values")) return;
    out.clear();
    for (const auto& [name, value] : place.json.items())
      read_value(place.child(value, name), rule, out[name]);
  } else {
    static_assert(NamedEnum<T>, "not a type that a field can have: see fields.h");
    const int index = read_name(place, enum_name_list<T>());
    if (index >= 0) out = enum_names(T{})[static_cast<size_t>(index)].second;
  }
}

/// Reads a whole config struct. Appends problems to `problems`; the fields concerned keep their defaults.
template <FieldStruct T>
T from_json(const Json& json, std::vector<ConfigProblem>& problems) {
  T value;
  read_value(JsonPath{json, "", problems}, Rule{}, value);
  return value;
}

}  // namespace tycho
