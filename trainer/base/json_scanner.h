// Reads JSON at the speed of the memory where it is plain, as nearly all of it is.
#pragma once
#include <string_view>

#include "trainer/base/json.h"

namespace tycho {

/// Reports a text's values to `events` as Json::sax_parse does. Returns false, perhaps after some events, for
/// text that sax_parse refuses. Requires a text without NUL bytes.
bool scan_json(std::string_view text, nlohmann::json_sax<Json>& events);

}  // namespace tycho
