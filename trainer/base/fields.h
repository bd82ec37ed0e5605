// How a config struct names its knobs once, for every reader and writer.
//
//   template <class Visitor> void fields(Visitor& v) {
//     v("lr", lr, "Peak learning rate, after warm-up.", positive);
//   }
//
// Readers and writers (json_reader.h, json_writer.h, schema.h) derive from FieldVisitor and are handed every
// field with its rules merged into one. Types a field can have: bool, int64_t, double, std::string, an enum
// with enum_names(), Duration, Bytes, std::optional<T> (t.null in Lua), std::vector<T>, std::array<T, N>,
// std::map<std::string, T> (an open map), a struct with fields(), OneOf<Kinds...> (a component), FunctionRef
// (a function of the recipe), and Json (plain data of any shape: tables, numbers, text).
#pragma once
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tycho {

/// A name that a field had before, and the version that renamed it ("" when that does not matter).
struct FormerName {
  std::string name;  // beside the field, or a whole dotted path when it stood elsewhere
  std::string since;
};

/// What a value must satisfy. Rules are combined by listing them; the last one that sets a member wins.
struct Rule {
  std::optional<double> min, max;
  bool min_exclusive = false, max_exclusive = false;
  std::optional<double> multiple_of;
  bool required = false;           // the recipe must set it
  std::string units;               // durations: the units accepted, "ba tok"
  std::vector<FormerName> former;  // still understood in recipes, with a warning
  std::string deprecated;          // what to write instead; "" for a field that is not deprecated

  Rule operator&(const Rule& b) const {
    Rule r = *this;
    if (b.min) r.min = b.min, r.min_exclusive = b.min_exclusive;
    if (b.max) r.max = b.max, r.max_exclusive = b.max_exclusive;
    if (b.multiple_of) r.multiple_of = b.multiple_of;
    r.required |= b.required;
    if (!b.units.empty()) r.units = b.units;
    r.former.insert(r.former.end(), b.former.begin(), b.former.end());
    if (!b.deprecated.empty()) r.deprecated = b.deprecated;
    return r;
  }
};

inline const Rule positive = {.min = 0, .min_exclusive = true};
inline const Rule required = {.required = true};
inline Rule at_least(double x) { return {.min = x}; }
inline Rule at_most(double x) { return {.max = x}; }
/// low <= value <= high.
inline Rule in_range(double low, double high) { return {.min = low, .max = high}; }
/// low <= value < high.
inline Rule below(double low, double high) { return {.min = low, .max = high, .max_exclusive = true}; }
inline Rule multiple_of(double x) { return {.multiple_of = x}; }
/// Which units a duration may have: units("ba tok").
inline Rule units(std::string names) { return {.units = std::move(names)}; }

/// The field was called `name` until version `since`: recipes and arguments with that name go on, with a
/// warning.
inline Rule formerly(std::string name, std::string since = "") {
  return {.former = {{std::move(name), std::move(since)}}};
}
/// Recipes that write the field get a warning that says what to write instead.
inline Rule deprecated(std::string advice) { return {.deprecated = std::move(advice)}; }

/// Names of an enum's values: found by enum_names(E) in the enum's namespace.
template <class E, size_t N>
using EnumNames = std::array<std::pair<const char*, E>, N>;

/// A component: one of several config structs, chosen by `kind`. Each kind has `static constexpr const char*
/// kKind`. A struct derives from it and says where recipes find the constructors: `static constexpr const
/// char* kNamespace = "optim"` gives t.optim.adamw{...}. In JSON: {"kind": "adamw", "lr": ...}.
template <class... Kinds>
struct OneOf {
  std::variant<Kinds...> value;
  const char* kind() const {
    return std::visit([](const auto& k) { return std::decay_t<decltype(k)>::kKind; }, value);
  }
  template <class Kind>
  const Kind& as() const {
    return std::get<Kind>(value);
  }
  template <class Kind>
  bool is() const {
    return std::holds_alternative<Kind>(value);
  }
};

/// Base of all readers and writers. Derived has `template <class T> void field(const char* name, T& member,
/// const char* help, const Rule& rule)`.
template <class Derived>
class FieldVisitor {
 public:
  template <class T, class... Rules>
  void operator()(const char* name, T& member, const char* help, const Rules&... rules) {
    Rule merged;
    ((merged = merged & rules), ...);
    static_cast<Derived*>(this)->field(name, member, help, merged);
  }
};

}  // namespace tycho
