// JSON whose items are too many to keep.
#pragma once
#include <functional>
#include <string_view>

#include "trainer/base/json.h"

namespace tycho {

using TakeJsonItem = std::function<void(Json&&)>;

/// Parses like parse_json, but passes each item of the list named `list` in the outermost object to `take`
/// and leaves that list empty. With an empty `take` everything is kept.
Json parse_json_items(std::string_view text, std::string_view place, std::string_view list,
                      const TakeJsonItem& take);

}  // namespace tycho
