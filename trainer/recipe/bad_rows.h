// Treatment of rows of texts and of conversations that cannot be used.
#pragma once
#include "trainer/base/fields.h"

namespace tycho {

/// kSkip leaves bad rows out and counts them.
enum class BadRows { kError, kSkip };
constexpr EnumNames<BadRows, 2> enum_names(BadRows) {
  return {{{"error", BadRows::kError}, {"skip", BadRows::kSkip}}};
}

}  // namespace tycho
