// How a config struct names its knobs once, for every reader and writer.
//
//   template <class Visitor> void fields(Visitor& v) {
//     v("lr", lr, "Peak learning rate, after warm-up.", positive);
//   }
//
// Readers and writers (json_reader.h, json_writer.h, schema.h) derive from FieldVisitor and are handed every
// field with its rules merged into one. Types a field can have: bool, int64_t, double, std::string, an enum
// with enum_names(), NumberOrAuto, Duration, DurationOrAuto, Bytes, std::optional<T> (t.null in Lua),
// std::vector<T>, std::array<T, N>, std::map<std::string, T> (an open map), a struct with fields(),
// OneOf<Kinds...> (a component), FunctionRef (a function of the recipe), and Json (plain data of any shape:
// tables, numbers, text).
#pragma once
#include <array>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tycho {

/// A number, or "auto" for one that Tycho chooses.
struct NumberOrAuto {
  static constexpr const char* kAuto = "auto";
  double value = 0;
  bool is_auto = false;
  bool operator==(const NumberOrAuto&) const = default;
};

/// The conditions of a value. Rules are combined by listing them; the last one that sets a member wins.
/// Strings are literals, so that a rule is copied as plain bytes, which keeps the code of each reader for
/// each field small.
struct Rule {
  std::optional<double> min, max;
  bool min_exclusive = false, max_exclusive = false;
  std::optional<double> multiple_of;
  bool required = false;   // the recipe must set it
  const char* units = "";  // durations: the units accepted, "ba tok"
};

/// Merges the rules into one.
Rule combine(std::initializer_list<Rule> rules);

inline constexpr Rule positive = {.min = 0, .min_exclusive = true};
inline constexpr Rule required = {.required = true};
constexpr Rule at_least(double x) { return {.min = x}; }
constexpr Rule at_most(double x) { return {.max = x}; }
/// Requires low <= value <= high.
constexpr Rule in_range(double low, double high) { return {.min = low, .max = high}; }
/// Requires low <= value < high.
constexpr Rule below(double low, double high) { return {.min = low, .max = high, .max_exclusive = true}; }
constexpr Rule multiple_of(double x) { return {.multiple_of = x}; }
/// Sets the units that a duration may have: units("ba tok").
constexpr Rule units(const char* names) { return {.units = names}; }

/// Names of an enum's values. enum_names(E) in the enum's namespace returns them.
template <class E, size_t N>
using EnumNames = std::array<std::pair<const char*, E>, N>;

/// A component: one of several config structs, chosen by `kind`. Each kind has `static constexpr const char*
/// kKind`. A struct derives from it and says where recipes find the constructors: `static constexpr const
/// char* kNamespace = "optim"` gives t.optim.adamw{...}. In JSON: {"kind": "adamw", "lr": ...}.
template <class... Kinds>
struct OneOf {
  std::variant<Kinds...> value;
  const char* kind() const {
    static constexpr std::array<const char*, sizeof...(Kinds)> kKinds = {Kinds::kKind...};
    return kKinds.at(value.index());
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
    static_cast<Derived*>(this)->field(name, member, help, combine({rules...}));
  }
};

}  // namespace tycho
