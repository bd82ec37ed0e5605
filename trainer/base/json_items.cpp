// Builds documents from a parser's events.
#include "trainer/base/json_items.h"

#include <algorithm>
#include <span>
#include <unordered_set>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/json_scanner.h"

namespace tycho {
namespace {

constexpr size_t kMaxDepth = 64;

/// Builds a document from a parser's events in time linear in the text. The library's own builders search an
/// object's keys for each new key, and with a callback search a list for each item.
class DocumentEvents : public nlohmann::json_sax<Json> {
 public:
  DocumentEvents(std::string_view place, size_t num_bytes, std::string_view list, const TakeJsonItem& take)
      : place_(place), num_bytes_(num_bytes), list_(list), take_(take) {}

  Json take() { return std::move(items_.front().value); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(int64_t value) override { return add(value); }
  bool number_unsigned(uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(Json::binary_t&) override { return false; }  // JSON as text has none

  bool start_object(size_t) override { return open(false); }
  bool start_array(size_t) override { return open(true); }

  bool key(std::string& key) override {
    key_ = std::move(key);
    return true;
  }

  bool end_object() override {
    const std::span<Item> items = items_of_innermost();
    check_keys(items);
    Json::object_t object;
    object.reserve(items.size());
    for (Item& item : items) object.emplace_back(std::move(item.key), std::move(item.value));
    return close(std::move(object));
  }

  bool end_array() override {
    const std::span<Item> items = items_of_innermost();
    Json::array_t array;
    array.reserve(items.size());
    for (Item& item : items) array.push_back(std::move(item.value));
    return close(std::move(array));
  }

  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    if (dynamic_cast<const Json::out_of_range*>(&error) != nullptr)
      fail(ExitCode::kUnusable, "[{}] JSON with a number that is too large", place_);
    fail(ExitCode::kUnusable, "[{}] not valid JSON at byte {} of {}", place_, byte, num_bytes_);
  }

 private:
  struct Item {
    std::string key;  // "" in a list
    Json value;
  };
  /// An object or a list whose end is still to come: its own key, and its first item.
  struct Open {
    std::string key;
    size_t first;
    bool is_list;
  };

  std::span<Item> items_of_innermost() { return std::span(items_).subspan(open_.back().first); }

  bool add(Json&& value) {
    if (take_ && open_.size() == 2 && open_.back().is_list && open_.back().key == list_)
      return take_(std::move(value)), true;
    items_.push_back({std::move(key_), std::move(value)});
    return true;
  }

  bool open(bool is_list) {
    if (open_.size() >= kMaxDepth)
      fail(ExitCode::kUnusable, "[{}] JSON nested deeper than {}", place_, kMaxDepth);
    open_.push_back({std::move(key_), items_.size(), is_list});
    return true;
  }

  bool close(Json&& value) {
    items_.resize(open_.back().first);
    key_ = std::move(open_.back().key);
    open_.pop_back();
    return add(std::move(value));
  }

  void check_keys(std::span<const Item> items) const {
    constexpr size_t kFew = 16;
    std::unordered_set<std::string_view> seen;
    for (size_t i = 0; i < items.size(); ++i) {
      const std::string& key = items[i].key;
      const auto is_key = [&](const Item& item) { return item.key == key; };
      const bool is_new =
          items.size() > kFew ? seen.insert(key).second : std::ranges::none_of(items.first(i), is_key);
      if (!is_new)
        fail(ExitCode::kUnusable, "[{}] the key {} appears twice in one JSON object", place_,
             Json(key).dump());
    }
  }

  std::string_view place_;
  size_t num_bytes_;
  std::string_view list_;
  const TakeJsonItem& take_;
  std::vector<Item> items_;  // of all that is open, and at last the document
  std::vector<Open> open_;
  std::string key_;
};

}  // namespace

Json parse_json_items(std::string_view text, std::string_view place, std::string_view list,
                      const TakeJsonItem& take) {
  // JSON has no NUL byte, and the parser would take one for the end of the text.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
    fail(ExitCode::kUnusable, "[{}] not valid JSON at byte {} of {}", place, nul + 1, text.size());
  DocumentEvents events(place, text.size(), list, take);
  if (scan_json(text, events)) return events.take();
  const TakeJsonItem none;
  DocumentEvents refused(place, text.size(), list, none);
  Json::sax_parse(text.begin(), text.end(), &refused);  // says where and why
  fail(ExitCode::kUnusable, "[{}] not valid JSON", place);
}

}  // namespace tycho
