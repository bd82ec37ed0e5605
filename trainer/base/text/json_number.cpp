// Null and a text for what is not finite, as programs expect of JSON that any parser reads.
#include "trainer/base/text/json_number.h"

#include <cmath>
#include <limits>

namespace tycho {

std::string not_finite_text(double value) {
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

void set_number(Json& object, const std::string& name, double value) {
  object[name] = std::isfinite(value) ? Json(value) : Json(nullptr);
  if (!std::isfinite(value)) object[kNotFinite][name] = not_finite_text(value);
}

std::optional<double> number_in(const Json& object, const std::string& name) {
  const auto found = object.find(name);
  if (found == object.end()) return std::nullopt;
  if (found->is_number()) return found->get<double>();
  const auto texts = object.find(kNotFinite);
  if (!found->is_null() || texts == object.end() || !texts->is_object()) return std::nullopt;
  const auto text = texts->find(name);
  if (text == texts->end()) return std::nullopt;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double value : {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()})
    if (*text == not_finite_text(value)) return value;
  return std::nullopt;
}

}  // namespace tycho
