// Describes config structs as JSON: what checks recipes, completes keys and writes docs.
//
// {"type": "struct", "fields": [{"name", "help", "type", ..., "required": true | "default": value}]}, where
// type is one of
//   boolean, string                                   nothing more
//   integer, number                                   "min", "max", "min_exclusive", "max_exclusive",
//   "multiple_of" duration                                          the same, and "units": ["ba", "tok"]
//   function, data                                    nothing more
//   bytes                                             "min", "max", ... in bytes
//   enum                                              "values": [name, ...]
//   list                                              "item": type, and "length" when it is fixed
//   map                                               "item": type of every value; keys are free
//   struct                                            "fields", and "shorthand": the key that a text alone
//                                                     sets, of structs with kShorthand
//   component                                         "namespace": "optim", "usual": kind, "kinds": {kind:
//   {"help", "type", "fields"}}, and "bases", alike, where recipes define kinds on what is no kind itself;
//   "definable": true at kinds that recipes define kinds on
// A field that may be null has "optional": true; a number or a duration that may be a
// word instead, "word": "auto". Rules of a list or a map hold for its
// items and stand there.
#pragma once
#include "trainer/base/bytes.h"
#include "trainer/base/defined_kind.h"
#include "trainer/base/duration.h"
#include "trainer/base/fields.h"
#include "trainer/base/function_ref.h"
#include "trainer/base/json.h"
#include "trainer/base/json_writer.h"

namespace tycho {

/// Returns the units that a duration under this rule may have.
std::vector<std::string> accepted_units(const Rule& rule);

template <class T>
Json describe_type(const Rule& rule);

// These parts do not depend on the type of the config and are compiled once.
Json simple_description(const char* type);
/// Describes an integer, a number, a duration or a size.
Json number_description(const char* type, const Rule& rule);
/// Describes a number or duration that may also be "auto".
Json number_or_auto_description(const char* type, const Rule& rule);
Json optional_description(Json description);
/// `length` is 0 when it is not fixed.
Json list_description(Json item, size_t length);
Json map_description(Json item);
Json enum_description(const std::vector<std::string>& names);
Json struct_description(Json fields);
Json kind_description(const char* help, Json of_struct);
/// `bases`: what recipes define kinds on and is no kind itself.
Json component_description(const char* name_space, Json kinds, Json bases);

/// Appends a description of every visited field to a list.
class SchemaWriter : public FieldVisitor<SchemaWriter> {
 public:
  explicit SchemaWriter(Json& fields) : fields_(fields) {}

  template <class T>
  void field(const char* name, T& member, const char* help, const Rule& rule) {
    add(name, help, rule, describe_type<T>(rule), to_json(member));
  }

 private:
  void add(const char* name, const char* help, const Rule& rule, const Json& type, Json usual);

  Json& fields_;
};

template <class T>
Json describe_struct() {
  Json fields = Json::array();
  T defaults;
  SchemaWriter writer(fields);
  defaults.fields(writer);
  Json description = struct_description(std::move(fields));
  if constexpr (requires { T::kShorthand; }) description["shorthand"] = T::kShorthand;
  return description;
}

template <class T>
Json describe_component() {
  Json kinds = Json::object(), bases = Json::object();
  for_each_kind(decltype(T::value){}, [&]<class Kind>(const Kind&) {
    Json& all = OnlyBase<Kind> ? bases : kinds;
    all[Kind::kKind] = kind_description(Kind::kHelp, describe_struct<Kind>());
    if constexpr (CanBeDefined<Kind> && !OnlyBase<Kind>) all[Kind::kKind]["definable"] = true;
  });
  return component_description(T::kNamespace, std::move(kinds), std::move(bases));
}

/// Returns {"type": ...} and the members of that type.
template <class T>
Json describe_type(const Rule& rule) {
  if constexpr (std::same_as<T, Json>) {
    return simple_description("data");
  } else if constexpr (std::same_as<T, FunctionRef>) {
    return simple_description("function");
  } else if constexpr (Component<T>) {
    return describe_component<T>();
  } else if constexpr (FieldStruct<T>) {
    return describe_struct<T>();
  } else if constexpr (OptionalField<T>) {
    return optional_description(describe_type<typename T::value_type>(rule));
  } else if constexpr (ListField<T>) {
    return list_description(describe_type<typename T::value_type>(rule), fixed_length<T>);
  } else if constexpr (MapField<T>) {
    return map_description(describe_type<typename T::mapped_type>(rule));
  } else if constexpr (NamedEnum<T>) {
    return enum_description(enum_name_list<T>());
  } else if constexpr (std::same_as<T, bool>) {
    return simple_description("boolean");
  } else if constexpr (std::same_as<T, std::string>) {
    return simple_description("string");
  } else if constexpr (std::same_as<T, DurationOrAuto>) {
    return number_or_auto_description("duration", rule);
  } else if constexpr (std::same_as<T, NumberOrAuto>) {
    return number_or_auto_description("number", rule);
  } else {
    return number_description(std::same_as<T, Duration>  ? "duration"
                              : std::same_as<T, Bytes>   ? "bytes"
                              : std::same_as<T, int64_t> ? "integer"
                                                         : "number",
                              rule);
  }
}

/// Describes a whole config struct.
template <FieldStruct T>
Json schema_of() {
  return describe_struct<T>();
}

}  // namespace tycho
