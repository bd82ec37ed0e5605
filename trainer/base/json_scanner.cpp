// Strings with escapes or other than ASCII, and numbers that fit no usual type, are read by the library.
#include "trainer/base/json_scanner.h"

#include <charconv>
#include <string>
#include <system_error>

namespace tycho {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_plain(char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

class Scanner {
 public:
  Scanner(std::string_view text, nlohmann::json_sax<Json>& events)
      : at_(text.data()), end_(text.data() + text.size()), events_(events) {
    if (text.starts_with(kByteOrderMark)) at_ += kByteOrderMark.size();
  }

  bool run() {
    while (true) {
      bool has_items = false;
      if (!take_value(has_items)) return false;
      if (has_items) continue;
      char c = ',';
      do {
        c = next();
        if (open_.empty()) return at_ == end_;
        if (c != ',' && c != open_.back()) return false;
        ++at_;
        if (c != ',') close();
      } while (c != ',');
      if (open_.back() == '}' && !take_key()) return false;
    }
  }

 private:
  /// Skips white space. Returns the byte after it, or NUL at the end.
  char next() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
    return at_ == end_ ? '\0' : *at_;
  }

  void close() {
    const bool is_object = open_.back() == '}';
    open_.pop_back();
    is_object ? events_.end_object() : events_.end_array();
  }

  /// Reads a value, or the beginning of an object or a list that has items.
  bool take_value(bool& has_items) {
    switch (next()) {
      case '{': return open('}', has_items) && (!has_items || take_key());
      case '[': return open(']', has_items);
      case '"': return take_string() && events_.string(text_);
      case 't': return take_word("true") && events_.boolean(true);
      case 'f': return take_word("false") && events_.boolean(false);
      case 'n': return take_word("null") && events_.null();
      default: return take_number();
    }
  }

  bool open(char end, bool& has_items) {
    ++at_;
    end == '}' ? events_.start_object(static_cast<size_t>(-1)) : events_.start_array(static_cast<size_t>(-1));
    open_ += end;
    has_items = next() != end;
    if (!has_items) ++at_, close();
    return true;
  }

  bool take_key() {
    if (next() != '"' || !take_string() || next() != ':') return false;
    ++at_;
    return events_.key(text_);
  }

  bool take_word(std::string_view word) {
    const bool is_there = std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(word);
    if (is_there) at_ += word.size();
    return is_there;
  }

  /// Reads the string that begins here into text_.
  bool take_string() {
    const char* const begin = at_++;
    while (at_ != end_ && is_plain(*at_)) ++at_;
    if (at_ != end_ && *at_ == '"') {
      text_.assign(begin + 1, at_++);
      return true;
    }
    for (; at_ != end_ && *at_ != '"'; ++at_)
      if (*at_ == '\\' && ++at_ == end_) return false;
    if (at_ == end_) return false;
    const Json value = Json::parse(begin, ++at_, nullptr, /*allow_exceptions=*/false);
    if (!value.is_string()) return false;
    text_ = value.get_ref<const std::string&>();
    return true;
  }

  bool take_digits() {
    const char* const begin = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != begin;
  }

  bool take_number() {
    const char* const begin = at_;
    const bool is_negative = at_ != end_ && *at_ == '-';
    if (is_negative) ++at_;
    const bool is_zero = at_ != end_ && *at_ == '0';
    if (is_zero ? (++at_, false) : !take_digits()) return false;
    bool is_whole = true;
    if (at_ != end_ && *at_ == '.') {
      is_whole = false;
      if (++at_, !take_digits()) return false;
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      is_whole = false;
      if (++at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (!take_digits()) return false;
    }
    if (uint64_t value = 0; is_whole && !is_negative && fits(begin, value))
      return events_.number_unsigned(value);
    if (int64_t value = 0; is_whole && is_negative && fits(begin, value))
      return events_.number_integer(value);
    if (double value = 0; !is_whole && fits(begin, value)) return events_.number_float(value, "");
    const Json value = Json::parse(begin, at_, nullptr, /*allow_exceptions=*/false);
    return value.is_number_float() && events_.number_float(value.get<double>(), "");
  }

  template <class T>
  bool fits(const char* begin, T& value) const {
    return std::from_chars(begin, at_, value).ec == std::errc();
  }

  const char *at_, *end_;
  nlohmann::json_sax<Json>& events_;
  std::string open_;  // the byte that ends each object and list that is open
  std::string text_;
};

}  // namespace

bool scan_json(std::string_view text, nlohmann::json_sax<Json>& events) {
  return Scanner(text, events).run();
}

}  // namespace tycho
