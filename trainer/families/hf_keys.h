// How the table of a family's config.json is written down: one row per key, read and written by the same row.
#pragma once
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "trainer/base/absent.h"
#include "trainer/base/error.h"
#include "trainer/base/fields.h"
#include "trainer/base/json.h"
#include "trainer/base/json_reader.h"
#include "trainer/base/json_writer.h"
#include "trainer/base/nearest.h"

namespace tycho {

/// One key of a config.json. A row without `read` is known but changes nothing that Tycho computes; a row
/// without `write` is not exported.
template <class Family>
struct HfKey {
  std::string name;
  /// Reads the value; adds a problem for what Tycho does not compute.
  std::function<void(const JsonPath&, Family&)> read;
  /// Returns the value; nullopt to leave the key out.
  std::function<std::optional<Json>(const Family&)> write;
};

/// Rows in the order in which they are read: a row may use what rows above it have read.
template <class Family>
using HfTable = std::vector<HfKey<Family>>;

/// A key that is a field of Tycho's config, with a rule. Family: the owner of the field, or named where the
/// field is that of a base.
template <class Family = void, class Owner, class T>
auto mapped(const char* name, T Owner::*member, const Rule& rule = {}) {
  using Model = std::conditional_t<std::is_void_v<Family>, Owner, Family>;
  return HfKey<Model>{name,
                      [=](const JsonPath& place, Model& model) { read_value(place, rule, model.*member); },
                      [=](const Model& model) -> std::optional<Json> { return to_json(model.*member); }};
}

/// A further name of a field that is only read.
template <class Family, class T>
HfKey<Family> also_read(const char* name, T Family::*member, const Rule& rule = {}) {
  return {name, mapped(name, member, rule).read, {}};
}

/// A key with one value that Tycho computes, the first of `allowed`, and others that mean the same.
template <class Family>
HfKey<Family> only(const char* name, std::vector<Json> allowed, const char* what_to_do) {
  const auto read = [=](const JsonPath& place, Family&) {
    for (const Json& value : allowed)
      if (place.json == value) return;
    place.problems.push_back({place.path, fmt::format("is {}, but Tycho computes {}; {}", place.json.dump(),
                                                      allowed.front().dump(), what_to_do)});
  };
  return {name, read, [=](const Family&) -> std::optional<Json> { return allowed.front(); }};
}

/// Same as `only`, but not exported.
template <class Family>
HfKey<Family> must_be(const char* name, std::vector<Json> allowed, const char* what_to_do) {
  return {name, only<Family>(name, std::move(allowed), what_to_do).read, {}};
}

/// Adds keys that change nothing that Tycho computes.
template <class Family>
void add_irrelevant(HfTable<Family>& table, const std::vector<std::string>& names) {
  for (const std::string& name : names) table.push_back({name, {}, {}});
}

template <class Family>
void read_table(const JsonPath& place, const HfTable<Family>& table, Family& model) {
  std::vector<std::string> known;
  for (const HfKey<Family>& key : table) {
    known.push_back(key.name);
    const auto found = place.json.find(key.name);
    if (found != place.json.end() && key.read) key.read(place.child(*found, key.name), model);
  }
  for (const auto& [name, value] : place.json.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string absent = absent_feature(name);
    place.problems.push_back({place.child(value, name).path,
                              absent.empty()
                                  ? fmt::format("is unknown to Tycho{}; if it does not change what the model "
                                                "computes, name it in ignore (of t.model.hf; --ignore of "
                                                "tycho convert)",
                                                did_you_mean(name, known))
                                  : absent + ": import a dense model"});
  }
}

template <class Family>
Json write_table(const HfTable<Family>& table, const Family& model) {
  Json json = json_object();
  for (const HfKey<Family>& key : table) {
    if (!key.write) continue;
    if (std::optional<Json> value = key.write(model)) json[key.name] = std::move(*value);
  }
  return json;
}

/// A key whose value is an object with a table of its own.
template <class Family>
HfKey<Family> group(const char* name, HfTable<Family> table) {
  const auto read = [=](const JsonPath& place, Family& model) {
    if (place.json.is_null()) return;
    if (check_object(place, "a table of keys")) read_table(place, table, model);
  };
  return {name, read, [=](const Family& model) -> std::optional<Json> { return write_table(table, model); }};
}

}  // namespace tycho
