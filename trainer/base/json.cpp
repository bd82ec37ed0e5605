// Canonical text of JSON.
#include "trainer/base/json.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/json_items.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace tycho {
namespace {

std::string quoted(const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    fail(ExitCode::kRecipe, "[json] expected UTF-8 text, got bytes that are not");
  }
}

void append_number(std::string& out, double x) {
  if (!std::isfinite(x)) fail(ExitCode::kRecipe, "[json] expected a finite number, got {}", x);
  const bool whole = x == std::floor(x) && std::abs(x) <= 0x1p53 && !(x == 0 && std::signbit(x));
  out += whole ? fmt::format("{}", static_cast<int64_t>(x)) : fmt::format("{}", x);
}

void append(std::string& out, const Json& json) {
  if (json.is_object()) {
    std::vector<Json::const_iterator> items;
    for (auto it = json.begin(); it != json.end(); ++it) items.push_back(it);
    std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) { return a.key() < b.key(); });
    const char* separator = "{";
    for (const auto& item : items) {
      out += separator + quoted(item.key()) + ":";
      append(out, item.value());
      separator = ",";
    }
    out += items.empty() ? "{}" : "}";
  } else if (json.is_array()) {
    const char* separator = "[";
    for (const Json& item : json) {
      out += separator;
      append(out, item);
      separator = ",";
    }
    out += json.empty() ? "[]" : "]";
  } else if (json.is_number_float()) {
    append_number(out, json.get<double>());
  } else if (json.is_string()) {
    out += quoted(json.get_ref<const std::string&>());
  } else {
    out += json.dump();
  }
}

}  // namespace

Json json_object() { return Json::object(); }
Json json_array() { return Json::array(); }

std::string canonical_json(const Json& json) {
  std::string out;
  append(out, json);
  return out;
}

Json parse_json(std::string_view text, std::string_view place) {
  return parse_json_items(text, place, "", {});
}

}  // namespace tycho
