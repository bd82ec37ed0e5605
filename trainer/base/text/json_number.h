// Numbers of JSON objects that may not be finite, for which JSON itself has no form.
#pragma once
#include <optional>
#include <string>

#include "trainer/base/json.h"

namespace tycho {

/// Key, beside the numbers of an object, that says what each null stands for: {"ppl": null, "not_finite":
/// {"ppl": "inf"}}.
inline constexpr const char* kNotFinite = "not_finite";

/// Returns "inf", "-inf" or "nan".
std::string not_finite_text(double value);
/// Sets object[name]. Writes a number that is not finite as null, with its text under kNotFinite.
void set_number(Json& object, const std::string& name, double value);
/// Returns the number that set_number wrote. Returns nullopt for an absent key, a value of another type, and
/// a null without a text.
std::optional<double> number_in(const Json& object, const std::string& name);

}  // namespace tycho
