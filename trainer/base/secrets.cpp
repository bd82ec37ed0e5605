// Masks secrets in text.
#include "trainer/base/secrets.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace tycho {
namespace {

using std::string_view_literals::operator""sv;

/// Parts of variable names that indicate a secret: as a word, at the end of a word, anywhere.
constexpr std::array kSecretWords = {"AUTH"sv, "CONNECTION"sv, "CONNSTR"sv, "CRED"sv, "CREDS"sv,
                                     "DSN"sv,  "JWT"sv,        "KEYS"sv,    "PASS"sv, "PAT"sv,
                                     "PW"sv,   "PWD"sv,        "PRIVATE"sv, "SAS"sv,  "SIG"sv};
constexpr std::array kSecretEndings = {"AUTH"sv, "KEY"sv, "TOKEN"sv};
constexpr std::array kSecretParts = {"COOKIE"sv,   "CREDENTIAL"sv, "PASSPHRASE"sv, "PASSWD"sv,
                                     "PASSWORD"sv, "SECRET"sv,     "WEBHOOK"sv};

/// Position of a secret in a text.
struct Span {
  size_t begin, end;
};

struct Register {
  std::shared_mutex mutex;
  std::vector<std::string> values;
  /// True once a secret is registered. Most processes have none and skip the search.
  std::atomic<bool> filled = false;
};

Register& the_register() {
  static Register secrets;
  return secrets;
}

bool is_secret_word(std::string_view word) {
  const auto is_word = [&](std::string_view known) { return word == known; };
  const auto ends_word = [&](std::string_view known) { return word.ends_with(known); };
  const auto is_part = [&](std::string_view known) { return word.find(known) != word.npos; };
  return std::any_of(kSecretWords.begin(), kSecretWords.end(), is_word) ||
         std::any_of(kSecretEndings.begin(), kSecretEndings.end(), ends_word) ||
         std::any_of(kSecretParts.begin(), kSecretParts.end(), is_part);
}

bool is_delimiter(char c) {
  return static_cast<unsigned char>(c) <= ' ' || "'\"`<>"sv.find(c) != std::string_view::npos;
}

/// Adds the spans between "://" and "@" and after "?" of every URL. A second URL may begin inside the first,
/// in a list or as its path.
void find_in_urls(std::string_view text, std::vector<Span>& spans) {
  constexpr std::string_view kMark = "://";
  size_t i = 0;
  const auto in_url = [&] { return i < text.size() && !is_delimiter(text[i]); };
  const auto at_mark = [&] { return text.substr(i, kMark.size()) == kMark; };
  while ((i = text.find(kMark, i)) != text.npos) {
    const size_t begin = i += kMark.size();
    size_t user_end = begin;
    for (; in_url() && !at_mark() && "/?#"sv.find(text[i]) == std::string_view::npos; ++i)
      if (text[i] == '@') user_end = i;
    if (user_end > begin) spans.push_back({begin, user_end});
    while (in_url() && !at_mark() && text[i] != '?') ++i;
    if (!in_url() || at_mark()) continue;
    const size_t query = ++i;
    while (in_url()) ++i;
    if (i > query) spans.push_back({query, i});
  }
}

/// Returns true if [begin, end) is a part of a hash of 40 or 64 digits, where a short value occurs by chance.
bool is_within_hash(std::string_view text, size_t begin, size_t end) {
  constexpr size_t kLongest = 64;
  const size_t size = end - begin;
  const auto is_alnum = [&](size_t i) { return std::isalnum(static_cast<unsigned char>(text[i])) != 0; };
  while (begin > 0 && end - begin <= kLongest && is_alnum(begin - 1)) --begin;
  while (end < text.size() && end - begin <= kLongest && is_alnum(end)) ++end;
  const std::string_view word = text.substr(begin, end - begin);
  return (word.size() == 40 || word.size() == kLongest) && size < word.size() &&
         word.find_first_not_of("0123456789abcdef") == word.npos;
}

void find_registered(std::string_view text, std::vector<Span>& spans) {
  Register& secrets = the_register();
  if (!secrets.filled.load(std::memory_order_acquire)) return;
  const std::shared_lock lock(secrets.mutex);
  for (const std::string& value : secrets.values)
    for (size_t at = text.find(value); at != text.npos; at = text.find(value, at + value.size()))
      if (!is_within_hash(text, at, at + value.size())) spans.push_back({at, at + value.size()});
}

/// Masks the spans; overlapping spans count as one.
std::string masked(std::string_view text, std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::string result;
  size_t done = 0;
  for (size_t i = 0; i < spans.size();) {
    const size_t begin = spans[i].begin;
    size_t end = spans[i].end;
    for (++i; i < spans.size() && spans[i].begin < end; ++i) end = std::max(end, spans[i].end);
    result.append(text.substr(done, begin - done)).append(kMasked);
    done = end;
  }
  return result.append(text.substr(done));
}

}  // namespace

bool is_secret_name(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      words.back() += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words == std::vector<std::string>{"PWD"}) return false;  // the working directory
  return std::any_of(words.begin(), words.end(), is_secret_word);
}

bool register_secret(const std::string& value) {
  if (value.size() < kShortestSecretBytes) return false;
  Register& secrets = the_register();
  const std::unique_lock lock(secrets.mutex);
  const auto add = [&](const std::string& text) {
    const bool is_blank = text.find_first_not_of(" \t\r\n") == std::string::npos;
    if (text.size() >= kShortestSecretBytes && !is_blank &&
        std::find(secrets.values.begin(), secrets.values.end(), text) == secrets.values.end())
      secrets.values.push_back(text);
  };
  add(value);
  // A log shows a key of several lines line by line.
  for (size_t begin = 0, end = 0; end < value.size(); begin = end + 1) {
    end = std::min(value.find('\n', begin), value.size());
    add(value.substr(begin, end - begin));
  }
  secrets.filled.store(true, std::memory_order_release);
  return true;
}

bool holds_secret(std::string_view text) {
  std::vector<Span> spans;
  find_registered(text, spans);
  return !spans.empty();
}

std::string without_secrets(std::string text) {
  std::vector<Span> spans;
  find_in_urls(text, spans);
  find_registered(text, spans);
  return spans.empty() ? text : masked(text, std::move(spans));
}

Json json_without_secrets(Json json) {
  if (json.is_string()) return without_secrets(json.get<std::string>());
  if (json.is_array())
    for (Json& part : json) part = json_without_secrets(std::move(part));
  if (!json.is_object()) return json;
  const auto is_clear = [](const auto& member) { return without_secrets(member.key()) == member.key(); };
  const auto members = json.items();
  if (std::all_of(members.begin(), members.end(), is_clear)) {
    for (auto& [key, part] : json.items()) part = json_without_secrets(std::move(part));
    return json;
  }
  Json result = Json::object();  // two names may have become one
  for (auto& [key, part] : json.items()) result[without_secrets(key)] = json_without_secrets(std::move(part));
  return result;
}

}  // namespace tycho
