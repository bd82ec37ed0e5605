// The kinds of type that a field can have, as concepts: what readers and writers switch on.
#pragma once
#include <array>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "trainer/base/fields.h"

namespace tycho {

/// Accepts every field and does nothing with it.
struct NullVisitor {
  template <class... Args>
  void operator()(const Args&...) {}
};

/// A struct with fields().
template <class T>
concept FieldStruct = requires(T& value, NullVisitor& visitor) {
  value.fields(visitor);
};

/// An enum with enum_names().
template <class T>
concept NamedEnum = std::is_enum_v<T> && requires(T value) {
  enum_names(value);
};

/// A struct derived from OneOf.
template <class T>
concept Component = requires {
  T::kNamespace;
}
&&requires(const T& value) { value.kind(); };

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
concept OptionalField = is_optional<T>;

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;
template <class T, size_t N>
inline constexpr bool is_list<std::array<T, N>> = true;
/// std::vector, or std::array of a fixed length.
template <class T>
concept ListField = is_list<T>;

template <class T>
inline constexpr size_t fixed_length = 0;
/// The length of a std::array, 0 for a std::vector.
template <class T, size_t N>
inline constexpr size_t fixed_length<std::array<T, N>> = N;

template <class T>
inline constexpr bool is_map = false;
template <class T>
inline constexpr bool is_map<std::map<std::string, T>> = true;
/// An open map from names to values.
template <class T>
concept MapField = is_map<T>;

/// Calls f with a default value of each kind of a component's variant.
template <class... Kinds, class F>
void for_each_kind(const std::variant<Kinds...>&, F&& f) {
  (f(Kinds{}), ...);
}

/// Returns the name of an enum's value, or nullptr.
template <NamedEnum E>
const char* enum_name(E value) {
  for (const auto& [name, known] : enum_names(E{})) {
    if (known == value) return name;
  }
  return nullptr;
}

/// Returns all names of an enum in the order of declaration.
template <NamedEnum E>
std::vector<std::string> enum_name_list() {
  std::vector<std::string> names;
  for (const auto& [name, value] : enum_names(E{})) names.push_back(name);
  return names;
}

}  // namespace tycho
