// JSON whose items are too many to keep.
#pragma once
#include <functional>
#include <string_view>

#include "trainer/base/json.h"

namespace tycho {

using TakeJsonItem = std::function<void(Json&&)>;

/// Parses as parse_json does, but hands each item of the list called `list` in the outermost object to `take`
/// and leaves the list empty. With an empty `take` everything is kept.
Json parse_json_items(std::string_view text, std::string_view place, std::string_view list,
                      const TakeJsonItem& take);

}  // namespace tycho
