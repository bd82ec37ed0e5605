// Writes config structs as JSON: numbers exact, enums by name, durations and sizes as text, an absent
// optional as null, a component as {"kind": ..., its fields}.
#pragma once
#include "trainer/base/bytes.h"
#include "trainer/base/defined_kind.h"
#include "trainer/base/duration.h"
#include "trainer/base/field_types.h"
#include "trainer/base/fields.h"
#include "trainer/base/function_ref.h"
#include "trainer/base/json.h"

namespace tycho {

template <class T>
Json to_json(const T& value);

/// Writes every visited field into an object.
class JsonWriter : public FieldVisitor<JsonWriter> {
 public:
  explicit JsonWriter(Json& object) : object_(object) {}

  template <class T>
  void field(const char* name, T& member, const char*, const Rule&) {
    set(name, to_json(member));
  }

 private:
  void set(const char* name, Json value);

  Json& object_;
};

/// Converts a value of any type that a field can have.
template <class T>
Json to_json(const T& value) {
  if constexpr (std::same_as<T, Json>) {
    return value;
  } else if constexpr (std::same_as<T, FunctionRef>) {
    return {{"at", value.at}, {"hash", value.hash}};
  } else if constexpr (Component<T>) {
    Json object = {{"kind", value.kind()}};
    std::visit(
        [&]<class Kind>(const Kind& kind) {
          if constexpr (CanBeDefined<Kind>) {
            if (!kind.defined.empty()) object["base"] = Kind::kKind;
            object.update(kind.values);
          }
          object.update(to_json(kind));
        },
        value.value);
    return object;
  } else if constexpr (FieldStruct<T>) {
    Json object = Json::object();
    T copy = value;  // fields() hands out members to readers too, so it is not const
    JsonWriter writer(object);
    copy.fields(writer);
    return object;
  } else if constexpr (OptionalField<T>) {
    return value ? to_json(*value) : Json(nullptr);
  } else if constexpr (ListField<T>) {
    Json list = Json::array();
    for (const auto& item : value) list.push_back(to_json(item));
    return list;
  } else if constexpr (MapField<T>) {
    Json object = Json::object();
    for (const auto& [key, item] : value) object[key] = to_json(item);
    return object;
  } else if constexpr (std::same_as<T, Duration> || std::same_as<T, DurationOrAuto> ||
                       std::same_as<T, Bytes>) {
    return value.str();
  } else if constexpr (std::same_as<T, NumberOrAuto>) {
    return value.is_auto ? Json(T::kAuto) : Json(value.value);
  } else if constexpr (NamedEnum<T>) {
    return enum_name(value);
  } else {
    static_assert(std::same_as<T, bool> || std::same_as<T, int64_t> || std::same_as<T, double> ||
                      std::same_as<T, std::string>,
                  "not a type that a field can have: see fields.h");
    return value;
  }
}

}  // namespace tycho
