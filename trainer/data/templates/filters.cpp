// Filters of single values; sequence_filters has those of sequences.
#include "trainer/data/templates/filters.h"

#include <charconv>
#include <cmath>
#include <string>

#include "trainer/data/templates/python_text.h"
#include "trainer/data/templates/sequence_filters.h"
#include "trainer/data/templates/value_json.h"

namespace tycho::jinja {
namespace {

Value default_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind("default", {"default_value", "boolean"}, 0, rendering);
  const bool keeps = flag_or(given[1], false) ? truth(value) : !value.is<Undefined>();
  return keeps ? value : given[0].value_or(Value(std::string()));
}

Value trim_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind("trim", {"chars"}, 0, rendering);
  const std::string text = printed(value, rendering);
  rendering.charge(std::ssize(text));
  if (!given[0] || given[0]->is<None>())
    return make_text(std::string(stripped(text, Sides::kBoth)), rendering);
  return make_text(std::string(stripped_of(text, text_or(given[0], "", rendering), Sides::kBoth)), rendering);
}

template <Case wanted>
Value case_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  arguments.bind("a filter of case", {}, 0, rendering);
  return make_text(in_case(printed(value, rendering), wanted, rendering), rendering);
}

/// Capitalizes words. Unlike str.title, only white space, hyphens and brackets begin a word, not every
/// character that is no letter.
Value title_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  arguments.bind("title", {}, 0, rendering);
  std::string text = in_case(printed(value, rendering), Case::kLower, rendering);
  bool begins = true;
  for (char& c : text) {
    if (begins && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    begins =
        is_space(static_cast<uint32_t>(c)) || std::string_view("-({[<").find(c) != std::string_view::npos;
  }
  return make_text(std::move(text), rendering);
}

Value replace_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind("replace", {"old", "new", "count"}, 2, rendering);
  return make_text(replaced(printed(value, rendering), printed(*given[0], rendering),
                            printed(*given[1], rendering), integer_or(given[2], -1, rendering), rendering),
                   rendering);
}

Value string_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  arguments.bind("string", {}, 0, rendering);
  return make_text(printed(value, rendering), rendering);
}

Value indent_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind("indent", {"width", "first", "blank"}, 0, rendering);
  std::string by(4, ' ');
  if (given[0] && given[0]->is_text()) {
    by = given[0]->text();
  } else {
    const int64_t width = integer_or(given[0], 4, rendering);
    if (width > 1000) rendering.wrong("indent expects at most 1000 spaces, got {}", width);
    by.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  if (!value.is_text()) rendering.wrong("indent expects a text, got {}", type_of(value));
  const std::string text = value.text() + "\n";
  std::string out = flag_or(given[1], false) ? by : "";
  bool is_first = true;
  for (const std::string_view line : lines_of(text, rendering)) {
    rendering.charge(std::ssize(line) + std::ssize(by));
    if (!is_first) out += "\n" + (line.empty() && !flag_or(given[2], false) ? std::string() : by);
    out += line;
    is_first = false;
  }
  return make_text(std::move(out), rendering);
}

/// Parses text as Python's float(text) does: decimal digits with white space around them.
std::optional<double> real_of(std::string_view text) {
  text = stripped(text, Sides::kBoth);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Value int_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind("int", {"default"}, 0, rendering);
  const Value otherwise = given[0].value_or(Value::Data(int64_t{0}));
  if (value.is<Undefined>()) rendering.wrong("{} is undefined", value.as<Undefined>().what);
  if (value.is_integer()) return Value::Data(value.integer());
  std::optional<double> number;
  if (value.is<double>()) number = value.as<double>();
  if (value.is_text()) {
    std::string_view text = stripped(value.text(), Sides::kBoth);
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
    int64_t integer = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), integer);
    if (error == std::errc() && end == text.data() + text.size()) return Value::Data(integer);
    number = real_of(value.text());
  }
  if (!number || !std::isfinite(*number)) return otherwise;
  if (std::abs(*number) >= 0x1p63) rendering.wrong("the result of int has more than 64 bits");
  return Value::Data(static_cast<int64_t>(*number));
}

Value float_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind("float", {"default"}, 0, rendering);
  if (value.is<Undefined>()) rendering.wrong("{} is undefined", value.as<Undefined>().what);
  if (value.is_number()) return Value::Data(value.number());
  const std::optional<double> number = value.is_text() ? real_of(value.text()) : std::nullopt;
  return number ? Value(Value::Data(*number)) : given[0].value_or(Value::Data(0.0));
}

Value abs_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  arguments.bind("abs", {}, 0, rendering);
  if (value.is<double>()) return Value::Data(std::abs(value.as<double>()));
  if (!value.is_integer() || value.integer() == INT64_MIN)
    rendering.wrong("abs expects a number, got {}", type_of(value));
  return Value::Data(std::abs(value.integer()));
}

Value tojson_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  const auto given =
      arguments.bind("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, rendering);
  JsonStyle style;
  style.ensure_ascii = flag_or(given[0], false);
  style.sort_keys = flag_or(given[3], false);
  if (given[1] && given[1]->is_text()) {
    style.indent = given[1]->text();
  } else if (given[1] && !given[1]->is<None>()) {
    const int64_t width = integer_or(given[1], 0, rendering);
    if (width > 100) rendering.wrong("tojson expects at most 100 spaces, got {}", width);
    style.indent = std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  if (style.indent) style.item_separator = ",";
  if (given[2] && !given[2]->is<None>()) {
    const std::vector<Value> separators = items_of(*given[2], rendering);
    if (separators.size() != 2) rendering.wrong("tojson expects two separators, got {}", separators.size());
    style.item_separator = text_or(separators[0], "", rendering);
    style.key_separator = text_or(separators[1], "", rendering);
  }
  return make_text(json_text(value, style, rendering), rendering);
}

const Filters& value_filters() {
  static const Filters filters = {
      {"abs", abs_filter},         {"capitalize", case_filter<Case::kCapitalized>},
      {"d", default_filter},       {"default", default_filter},
      {"float", float_filter},     {"indent", indent_filter},
      {"int", int_filter},         {"lower", case_filter<Case::kLower>},
      {"replace", replace_filter}, {"string", string_filter},
      {"title", title_filter},     {"tojson", tojson_filter},
      {"trim", trim_filter},       {"upper", case_filter<Case::kUpper>},
  };
  return filters;
}

}  // namespace

Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments,
                   Rendering& rendering) {
  rendering.charge(1);
  for (const Filters* filters : {&value_filters(), &sequence_filters()})
    if (const auto found = filters->find(name); found != filters->end())
      return found->second(value, arguments, rendering);
  if (name == "safe") rendering.wrong("the filter safe is supported at the end of what is printed alone");
  rendering.wrong("the filter {} is not supported", name);
}

}  // namespace tycho::jinja
