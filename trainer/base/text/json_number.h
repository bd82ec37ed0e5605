// Numbers of JSON objects that may not be finite, for which JSON itself has no form.
#pragma once
#include <optional>
#include <string>

#include "trainer/base/json.h"

namespace tycho {

/// Key beside the numbers of an object that says what those are that stand as null:
/// {"ppl": null, "not_finite": {"ppl": "inf"}}.
inline constexpr const char* kNotFinite = "not_finite";

/// "inf", "-inf" or "nan".
std::string not_finite_text(double value);
/// Sets object[name]. What is not finite becomes null, with its text under kNotFinite.
void set_number(Json& object, const std::string& name, double value);
/// Returns the number that set_number wrote. Nothing for another key, another value, and for a null without a
/// text.
std::optional<double> number_in(const Json& object, const std::string& name);

}  // namespace tycho
