// The better end of a metric.
#pragma once
#include "trainer/base/fields.h"

namespace tycho {

enum class Goal { kMin, kMax };
constexpr EnumNames<Goal, 2> enum_names(Goal) { return {{{"min", Goal::kMin}, {"max", Goal::kMax}}}; }

}  // namespace tycho
