// Searches documents and interprets their scalars.
#include "bindings/import/document.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "bindings/define/recipe.h"
#include "trainer/base/error.h"
#include "trainer/base/regex.h"

namespace tycho {
namespace {

using Kind = DocScalar::Kind;

template <size_t N>
bool one_of(const std::string& text, const std::array<const char*, N>& words) {
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return text == word; });
}

std::string without_underscores(std::string text) {
  std::erase(text, '_');
  if (text.starts_with('+')) text.erase(0, 1);
  return text;
}

/// Returns a whole number in decimal digits; "" for other texts.
std::string integer_text(const std::string& text) {
  static const Regex decimal("[-+]?(0|[1-9][0-9_]*)"), octal("[-+]?0[0-7_]+"), hex("[-+]?0x[0-9a-fA-F_]+"),
      binary("[-+]?0b[01_]+"), sexagesimal("[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+");
  std::string bare = without_underscores(text);
  if (decimal.matches_all_of(text)) return bare;
  if (hex.matches_all_of(text)) return std::to_string(std::strtoll(bare.c_str(), nullptr, 16));
  if (octal.matches_all_of(text)) return std::to_string(std::strtoll(bare.c_str(), nullptr, 8));
  if (binary.matches_all_of(text)) {
    bare.erase(bare.find('b'), 1);
    return std::to_string(std::strtoll(bare.c_str(), nullptr, 2));
  }
  if (!sexagesimal.matches_all_of(text)) return "";
  const bool negative = bare.starts_with('-');
  long long value = 0;  // what is beside the colons counts sixty times what follows
  for (size_t at = negative ? 1 : 0; at <= bare.size(); at = std::min(bare.find(':', at), bare.size()) + 1)
    value = value * 60 + std::strtoll(bare.c_str() + at, nullptr, 10);
  return std::to_string(negative ? -value : value);
}

bool is_number(const std::string& text) {
  static const Regex forms(
      "[-+]?[0-9][0-9_]*\\.[0-9_]*([eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+|\\.[0-9_]+([eE][-+]?[0-"
      "9]+)?|[-+]?\\.(inf|Inf|INF)|\\.(nan|NaN|NAN)");
  return forms.matches_all_of(text);
}

/// Returns 12:30.5, in base sixty, as a decimal number; "" for other texts.
std::string sexagesimal_text(const std::string& text) {
  static const Regex form("[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\\.[0-9_]*");
  if (!form.matches_all_of(text)) return "";
  const std::string bare = without_underscores(text);
  const bool negative = bare.starts_with('-');
  double value = 0;
  for (size_t at = negative ? 1 : 0; at <= bare.size(); at = std::min(bare.find(':', at), bare.size()) + 1)
    value = value * 60 + std::strtod(bare.c_str() + at, nullptr);
  return fmt::format("{}{}", negative ? "-" : "", value);
}

/// Returns an item of a list by its index from 0, or from -1 for the last; null when there is none.
const DocNode* item_at(const DocNode& list, std::string_view place) {
  int64_t index = 0;
  const auto read = std::from_chars(place.data(), place.data() + place.size(), index);
  if (read.ec != std::errc() || read.ptr != place.data() + place.size()) return nullptr;
  if (index < 0) index += std::ssize(list.items);
  return index >= 0 && index < std::ssize(list.items) ? &list.items[static_cast<size_t>(index)] : nullptr;
}

}  // namespace

const DocNode* DocNode::find(std::string_view wanted) const {
  for (const auto& [name, node] : entries)
    if (name == wanted) return &node;
  return nullptr;
}

DocNode* DocNode::find(std::string_view wanted) {
  return const_cast<DocNode*>(static_cast<const DocNode*>(this)->find(wanted));
}

SourceLocation DocNode::place() const {
  if (argument > 0) return {.argument = argument};
  return is_scalar() && value.line > 0 ? value : key;
}

const DocNode* DocNode::at(std::string_view path) const {
  const DocNode* here = this;
  while (here != nullptr && !path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    here = here->is_list() ? item_at(*here, path.substr(0, dot)) : here->find(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return here;
}

DocScalar read_scalar(const DocNode& node) {
  static constexpr std::array kNull = {"", "~", "null", "Null", "NULL"};
  static constexpr std::array kTrue = {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"};
  static constexpr std::array kFalse = {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"};
  // Numbers are short; a regular expression on a long text would be slow.
  if (!node.is_plain || node.text.size() > 64) return {Kind::kText, node.text};
  if (one_of(node.text, kNull)) return {Kind::kNull, ""};
  if (one_of(node.text, kTrue)) return {Kind::kBool, "true"};
  if (one_of(node.text, kFalse)) return {Kind::kBool, "false"};
  if (std::string digits = integer_text(node.text); !digits.empty())
    return {Kind::kInteger, std::move(digits)};
  if (is_number(node.text)) return {Kind::kNumber, without_underscores(node.text)};
  if (std::string number = sexagesimal_text(node.text); !number.empty())
    return {Kind::kNumber, std::move(number)};
  return {Kind::kText, node.text};
}

void fail_in_file(const std::string& file, const std::string& text, const SourceLocation& place,
                  const std::string& message) {
  std::string report = problem_report({{file, place, message}}, {{file, text}});
  report.erase(report.find_last_not_of('\n') + 1);
  throw Error(report, ExitCode::kUnusable);
}

std::string brief(const DocNode& node) {
  constexpr size_t kMost = 60;
  std::string out;
  if (node.is_scalar()) {
    out = node.is_plain && node.text.empty() ? "null" : node.text;
    std::replace(out.begin(), out.end(), '\n', ' ');
  }
  for (const DocNode& item : node.items) {
    if (out.size() <= kMost) out += (out.empty() ? "" : ", ") + brief(item);
  }
  for (const auto& [key, value] : node.entries) {
    if (out.size() <= kMost) out += (out.empty() ? "" : ", ") + key + ": " + brief(value);
  }
  if (node.is_list()) out = "[" + out + "]";
  if (node.is_map()) out = "{" + out + "}";
  if (out.size() <= kMost) return out;
  size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xC0) == 0x80) --end;
  return out.substr(0, end) + "...";
}

void NodeBudget::check_depth(int depth) const {
  constexpr int kMostLevels = 64;
  if (depth > kMostLevels)
    fail(ExitCode::kUnusable, "[{}] is nested more than {} levels deep", place_, kMostLevels);
}

void NodeBudget::take(int depth) {
  check_depth(depth);
  if (--left_ < 0)
    fail(ExitCode::kUnusable,
         "[{}] expands to more than 20,000 values: is an alias (*name) repeated inside others?", place_);
}

}  // namespace tycho
