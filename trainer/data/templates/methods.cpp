// One entry per method, in two tables.
#include "trainer/data/templates/methods.h"

#include <algorithm>
#include <map>
#include <string>

#include "trainer/data/templates/python_text.h"

namespace tycho::jinja {
namespace {

using TextMethod = Value (*)(const std::string& text, const Arguments& arguments, Rendering& rendering);
using DictMethod = Value (*)(const Dict& dict, const Arguments& arguments, Rendering& rendering);

template <Sides sides>
Value strip_method(const std::string& text, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind("strip", {"chars"}, 0, rendering);
  rendering.charge(std::ssize(text));
  if (!given[0] || given[0]->is<None>()) return make_text(std::string(stripped(text, sides)), rendering);
  return make_text(std::string(stripped_of(text, text_or(given[0], "", rendering), sides)), rendering);
}

template <Case wanted>
Value case_method(const std::string& text, const Arguments& arguments, Rendering& rendering) {
  arguments.bind("a method of case", {}, 0, rendering);
  return make_text(in_case(text, wanted, rendering), rendering);
}

/// Splits text at white space as Python's split() does: at most `most` times, or everywhere if `most` is
/// negative.
std::vector<Value> split_at_space(std::string_view rest, int64_t most, Rendering& rendering) {
  std::vector<Value> parts;
  std::vector<std::string_view> characters = characters_of(rest, rendering);
  size_t begin = rest.size(), at = 0;  // begin of the part that is being read, or the end
  for (const std::string_view character : characters) {
    const bool is_space = stripped(character, Sides::kBoth).empty();
    if (is_space && begin < at) {
      parts.push_back(make_text(std::string(rest.substr(begin, at - begin)), rendering));
      begin = rest.size();
    } else if (!is_space && begin == rest.size()) {
      begin = at;
      if (most >= 0 && std::ssize(parts) == most) break;
    }
    at += character.size();
  }
  if (begin < rest.size()) parts.push_back(make_text(std::string(rest.substr(begin)), rendering));
  return parts;
}

template <bool from_left>
Value split_method(const std::string& text, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind("split", {"sep", "maxsplit"}, 0, rendering);
  const int64_t most = integer_or(given[1], -1, rendering);
  rendering.charge(std::ssize(text));
  if (!given[0] || given[0]->is<None>()) {
    if (!from_left) rendering.wrong("rsplit without a separator is not supported");
    return make_list(split_at_space(text, most, rendering), ListKind::kList, rendering);
  }
  const std::string separator = text_or(given[0], " ", rendering);
  if (separator.empty()) rendering.wrong("split needs a separator that is not empty");
  std::vector<Value> parts;
  const auto add = [&](std::string_view part) { parts.push_back(make_text(std::string(part), rendering)); };
  std::string_view rest = text;
  while (most < 0 || std::ssize(parts) < most) {
    const size_t at = from_left ? rest.find(separator) : rest.rfind(separator);
    if (at == rest.npos) break;
    add(from_left ? rest.substr(0, at) : rest.substr(at + separator.size()));
    rest = from_left ? rest.substr(at + separator.size()) : rest.substr(0, at);
  }
  add(rest);
  if (!from_left) std::reverse(parts.begin(), parts.end());
  return make_list(std::move(parts), ListKind::kList, rendering);
}

Value splitlines_method(const std::string& text, const Arguments& arguments, Rendering& rendering) {
  arguments.bind("splitlines", {}, 0, rendering);
  std::vector<Value> lines;
  for (const std::string_view line : lines_of(text, rendering))
    lines.push_back(make_text(std::string(line), rendering));
  return make_list(std::move(lines), ListKind::kList, rendering);
}

template <bool at_begin>
Value has_affix(const std::string& text, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind(at_begin ? "startswith" : "endswith", {"affix"}, 1, rendering);
  std::vector<Value> affixes = {*given[0]};
  if (given[0]->is<ListPtr>()) affixes = given[0]->list().items;
  return Value::Data(std::any_of(affixes.begin(), affixes.end(), [&](const Value& value) {
    const std::string affix = text_or(value, "", rendering);
    return at_begin ? text.starts_with(affix) : text.ends_with(affix);
  }));
}

template <bool at_begin>
Value without_affix(const std::string& text, const Arguments& arguments, Rendering& rendering) {
  const std::string affix =
      text_or(arguments.bind("removeprefix", {"affix"}, 1, rendering)[0], "", rendering);
  if (!(at_begin ? text.starts_with(affix) : text.ends_with(affix))) return make_text(text, rendering);
  return make_text(at_begin ? text.substr(affix.size()) : text.substr(0, text.size() - affix.size()),
                   rendering);
}

template <bool from_left>
Value find_method(const std::string& text, const Arguments& arguments, Rendering& rendering) {
  const std::string part = text_or(arguments.bind("find", {"part"}, 1, rendering)[0], "", rendering);
  rendering.charge(std::ssize(text));
  const size_t at = from_left ? text.find(part) : text.rfind(part);
  if (at == text.npos) return Value::Data(int64_t{-1});
  return Value::Data(
      static_cast<int64_t>(characters_of(std::string_view(text).substr(0, at), rendering).size()));
}

Value count_method(const std::string& text, const Arguments& arguments, Rendering& rendering) {
  const std::string part = text_or(arguments.bind("count", {"part"}, 1, rendering)[0], "", rendering);
  rendering.charge(std::ssize(text));
  if (part.empty()) return Value::Data(std::ssize(characters_of(text, rendering)) + 1);
  int64_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++found;
  return Value::Data(found);
}

Value replace_method(const std::string& text, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind("replace", {"old", "new", "count"}, 2, rendering);
  return make_text(replaced(text, text_or(given[0], "", rendering), text_or(given[1], "", rendering),
                            integer_or(given[2], -1, rendering), rendering),
                   rendering);
}

Value join_method(const std::string& text, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind("join", {"texts"}, 1, rendering);
  std::string out;
  bool is_first = true;
  for (const Value& item : items_of(*given[0], rendering)) {
    if (!item.is_text()) rendering.wrong("join expects texts, got {}", type_of(item));
    rendering.charge(std::ssize(text) + std::ssize(item.text()));
    out += (is_first ? "" : text) + item.text();
    is_first = false;
  }
  return make_text(std::move(out), rendering);
}

Value is_digits(const std::string& text, const Arguments& arguments, Rendering& rendering) {
  arguments.bind("isdigit", {}, 0, rendering);
  rendering.charge(std::ssize(text));
  const auto is_other = [](char c) { return static_cast<unsigned char>(c) < 0x80 && (c < '0' || c > '9'); };
  if (text.empty() || std::any_of(text.begin(), text.end(), is_other)) return Value::Data(false);
  if (text.find_first_not_of("0123456789") != text.npos)
    rendering.wrong("isdigit is not supported for characters that are not ASCII");
  return Value::Data(true);
}

Value get_method(const Dict& dict, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind("get", {"key", "default"}, 1, rendering);
  const Value* found = given[0]->is_text() ? dict.find(given[0]->text()) : nullptr;
  return found != nullptr ? *found : given[1].value_or(Value());
}

template <bool keys, bool values>
Value members_method(const Dict& dict, const Arguments& arguments, Rendering& rendering) {
  arguments.bind("a method of a dict", {}, 0, rendering);
  std::vector<Value> items;
  for (const auto& [key, value] : dict.members) {
    if (keys && values) {
      items.push_back(make_list({make_text(key, rendering), value}, ListKind::kTuple, rendering));
    } else {
      items.push_back(keys ? make_text(key, rendering) : value);
    }
  }
  return make_list(std::move(items), ListKind::kView, rendering);
}

const std::map<std::string, TextMethod, std::less<>>& text_methods() {
  static const std::map<std::string, TextMethod, std::less<>> methods = {
      {"strip", strip_method<Sides::kBoth>},
      {"lstrip", strip_method<Sides::kLeft>},
      {"rstrip", strip_method<Sides::kRight>},
      {"upper", case_method<Case::kUpper>},
      {"lower", case_method<Case::kLower>},
      {"capitalize", case_method<Case::kCapitalized>},
      {"title", case_method<Case::kTitle>},
      {"split", split_method<true>},
      {"rsplit", split_method<false>},
      {"splitlines", splitlines_method},
      {"startswith", has_affix<true>},
      {"endswith", has_affix<false>},
      {"removeprefix", without_affix<true>},
      {"removesuffix", without_affix<false>},
      {"find", find_method<true>},
      {"rfind", find_method<false>},
      {"count", count_method},
      {"replace", replace_method},
      {"join", join_method},
      {"isdigit", is_digits},
  };
  return methods;
}

const std::map<std::string, DictMethod, std::less<>>& dict_methods() {
  static const std::map<std::string, DictMethod, std::less<>> methods = {
      {"get", get_method},
      {"keys", members_method<true, false>},
      {"values", members_method<false, true>},
      {"items", members_method<true, true>},
  };
  return methods;
}

}  // namespace

bool has_method(const Value& value, std::string_view name) {
  return (value.is_text() && text_methods().contains(name)) ||
         (value.is<DictPtr>() && dict_methods().contains(name));
}

Value call_method(const Value& value, std::string_view name, const Arguments& arguments,
                  Rendering& rendering) {
  if (!has_method(value, name)) rendering.wrong("the method {} of {} is not supported", name, type_of(value));
  if (value.is_text()) return text_methods().find(name)->second(value.text(), arguments, rendering);
  return dict_methods().find(name)->second(value.dict(), arguments, rendering);
}

}  // namespace tycho::jinja
