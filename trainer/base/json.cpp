// Canonical text of JSON, and parsing within limits.
#include "trainer/base/json.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "trainer/base/error.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace tycho {
namespace {

constexpr int kMaxDepth = 64;

std::string quoted(const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    fail(ExitCode::kRecipe, "[json] wanted UTF-8 text, given bytes that are not");
  }
}

void append_number(std::string& out, double x) {
  if (!std::isfinite(x)) fail(ExitCode::kRecipe, "[json] wanted a finite number, given {}", x);
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

/// Watches a parse: how deep it is, and which keys the open objects have.
class Limits {
 public:
  explicit Limits(std::string_view place) : place_(place) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& value) {
    using Event = Json::parse_event_t;
    const bool opens = event == Event::object_start || event == Event::array_start;
    if (opens && depth >= kMaxDepth)
      fail(ExitCode::kUnusable, "[{}] JSON nested deeper than {}", place_, kMaxDepth);
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key && !keys_.back().insert(value.get_ref<const std::string&>()).second) {
      fail(ExitCode::kUnusable, "[{}] the key {} appears twice in one JSON object", place_, value.dump());
    }
    return true;
  }

 private:
  std::string_view place_;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

std::string canonical_json(const Json& json) {
  std::string out;
  append(out, json);
  return out;
}

Json parse_json(std::string_view text, std::string_view place) {
  // JSON has no NUL byte, and the parser would take one for the end of the text.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
    fail(ExitCode::kUnusable, "[{}] not valid JSON at byte {} of {}", place, nul + 1, text.size());
  // The parser copies its callback, so the state lives here.
  Limits limits(place);
  const auto watch = [&limits](int depth, Json::parse_event_t event, Json& value) {
    return limits(depth, event, value);
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::parse_error& error) {
    fail(ExitCode::kUnusable, "[{}] not valid JSON at byte {} of {}", place, error.byte, text.size());
  } catch (const Json::out_of_range&) {
    fail(ExitCode::kUnusable, "[{}] JSON with a number that is too large", place);
  }
}

}  // namespace tycho
