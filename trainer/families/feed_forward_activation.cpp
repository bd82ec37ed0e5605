// A name, or what a recipe's function computes.
#include "trainer/families/feed_forward_activation.h"

#include "trainer/base/json_reader.h"
#include "trainer/base/schema.h"

namespace tycho {

bool FeedForwardActivation::operator==(const FeedForwardActivation&) const = default;

void read_value(const JsonPath& place, const Rule& rule, FeedForwardActivation& out) {
  if (!place.json.is_object()) {
    Activation name = out.builtin;
    read_value(place, rule, name);
    out = name;
    return;
  }
  const auto expression = place.json.find("expression"), code = place.json.find("code");
  if (expression == place.json.end() || code == place.json.end() || !expression->is_object())
    return place.wanted("the name of an activation, or a function of t.act.define");
  check_keys(place, {"expression", "code"});
  read_value(place.child(*code, "code"), {}, out.code);
  out.expression = *expression;
}

Json to_json(const FeedForwardActivation& activation) {
  if (!activation.is_defined()) return enum_name(activation.builtin);
  return {{"expression", activation.expression}, {"code", to_json(activation.code)}};
}

template <>
Json describe_type<FeedForwardActivation>(const Rule&) {
  Json description = enum_description(enum_name_list<Activation>());
  description["defines"] = "act";
  return description;
}

}  // namespace tycho
