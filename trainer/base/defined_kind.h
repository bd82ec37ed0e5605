// A kind of a component that a recipe defines in Lua: a built-in kind, its base, with a name and values of
// its own.
#pragma once
#include <array>
#include <concepts>
#include <string>
#include <type_traits>
#include <variant>

#include "trainer/base/json.h"

namespace tycho {

/// Base of the kinds of a OneOf that recipes can build their own kinds on. In JSON such a kind is {"kind":
/// its name, "base": kKind of the struct, the fields of the struct, and its own values}. Lua has checked the
/// values.
struct DefinedKind {
  std::string defined;  // name of the kind; "" for the built-in kind itself
  Json values = json_object();
};

template <class Kind>
concept CanBeDefined = std::derived_from<Kind, DefinedKind>;

/// Returns the name of a component's kind, also of one that the recipe defines. A OneOf with such kinds has
/// `const char* kind() const { return kind_name(value); }`.
template <class... Kinds>
const char* kind_name(const std::variant<Kinds...>& value) {
  static constexpr std::array<const char*, sizeof...(Kinds)> kKinds = {Kinds::kKind...};
  const char* name = kKinds.at(value.index());
  const auto take_defined = [&]<class Kind>(std::type_identity<Kind>) {
    if constexpr (CanBeDefined<Kind>)
      if (const Kind* kind = std::get_if<Kind>(&value); kind && !kind->defined.empty())
        name = kind->defined.c_str();
  };
  (take_defined(std::type_identity<Kinds>()), ...);
  return name;
}

/// A base that is no kind itself: recipes have no constructor for it. Such a struct has `static constexpr
/// bool kOnlyBase = true`, and its fields stand in the schema's "bases" instead of "kinds".
template <class Kind>
concept OnlyBase = CanBeDefined<Kind> && Kind::kOnlyBase;

}  // namespace tycho
