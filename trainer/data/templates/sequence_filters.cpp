// Filters that return generators in Jinja return lists that can be walked once.
#include "trainer/data/templates/sequence_filters.h"

#include <algorithm>

#include "trainer/data/templates/filters.h"
#include "trainer/data/templates/operators.h"
#include "trainer/data/templates/python_text.h"
#include "trainer/data/templates/value_tests.h"

namespace tycho::jinja {
namespace {

/// Returns the value at a path such as "role" or "function.name".
Value attribute_of(Value value, const Value& path, Rendering& rendering) {
  if (path.is_integer()) return subscript(value, path, rendering);
  if (!path.is_text()) rendering.wrong("expected the name of an attribute, got {}", type_of(path));
  for (size_t begin = 0; begin <= path.text().size();) {
    const size_t end = std::min(path.text().find('.', begin), path.text().size());
    const std::string part = path.text().substr(begin, end - begin);
    const bool is_index =
        !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
    value =
        subscript(value, is_index ? Value(Value::Data(int64_t{std::stoi(part)})) : Value(part), rendering);
    begin = end + 1;
  }
  return value;
}

/// Returns the key that Jinja sorts an item by: text in lower case, unless case matters.
Value sort_key(const Value& item, const std::optional<Value>& attribute, bool case_sensitive,
               Rendering& rendering) {
  Value key = attribute && !attribute->is<None>() ? attribute_of(item, *attribute, rendering) : item;
  if (case_sensitive || !key.is_text()) return key;
  return make_text(in_case(key.text(), Case::kLower, rendering), rendering);
}

std::vector<std::pair<Value, Value>> keyed(const Value& value, const std::optional<Value>& attribute,
                                           bool case_sensitive, Rendering& rendering) {
  std::vector<std::pair<Value, Value>> all;
  for (const Value& item : items_of(value, rendering))
    all.emplace_back(sort_key(item, attribute, case_sensitive, rendering), item);
  return all;
}

Value first_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  arguments.bind("first", {}, 0, rendering);
  const std::vector<Value> items = items_of(value, rendering);
  return items.empty() ? Value::undefined("the first item of an empty sequence") : items.front();
}

Value last_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  arguments.bind("last", {}, 0, rendering);
  if (value.is<ListPtr>() && value.list().kind == ListKind::kOnce)
    rendering.wrong("the last item of a filter's result: write |list|last");
  const std::vector<Value> items = items_of(value, rendering);
  return items.empty() ? Value::undefined("the last item of an empty sequence") : items.back();
}

Value list_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  arguments.bind("list", {}, 0, rendering);
  return make_list(items_of(value, rendering), ListKind::kList, rendering);
}

Value length_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  arguments.bind("length", {}, 0, rendering);
  if (value.is<Undefined>()) return Value::Data(int64_t{0});
  if (value.is_text()) return Value::Data(std::ssize(characters_of(value.text(), rendering)));
  if (value.is<DictPtr>()) return Value::Data(std::ssize(value.dict().members));
  if (!value.is<ListPtr>() || value.list().kind == ListKind::kOnce)
    rendering.wrong("{} has no length", type_of(value));
  return Value::Data(std::ssize(value.list().items));
}

Value join_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind("join", {"d", "attribute"}, 0, rendering);
  const std::string between = given[0] ? printed(*given[0], rendering) : "";
  std::string out;
  bool is_first = true;
  for (const Value& item : items_of(value, rendering)) {
    if (!is_first) out += between;
    is_first = false;
    const size_t before = out.size();
    out += printed(given[1] && !given[1]->is<None>() ? attribute_of(item, *given[1], rendering) : item,
                   rendering);
    rendering.charge(static_cast<int64_t>(out.size() - before + between.size()));
  }
  return make_text(std::move(out), rendering);
}

Value reverse_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  arguments.bind("reverse", {}, 0, rendering);
  std::vector<Value> items = items_of(value, rendering);
  std::reverse(items.begin(), items.end());
  if (!value.is_text()) return make_list(std::move(items), ListKind::kOnce, rendering);
  std::string text;
  for (const Value& item : items) text += item.text();
  return make_text(std::move(text), rendering);
}

/// Returns the items that map and select visit: none if Python's bool() of `value` is false.
std::vector<Value> walked(const Value& value, Rendering& rendering) {
  return truth(value) ? items_of(value, rendering) : std::vector<Value>();
}

Value map_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  std::vector<Value> items;
  if (arguments.values.empty()) {
    const auto given = arguments.bind("map", {"attribute", "default"}, 1, rendering);
    for (const Value& item : walked(value, rendering)) {
      const Value found = attribute_of(item, *given[0], rendering);
      items.push_back(found.is<Undefined>() && given[1] ? *given[1] : found);
    }
  } else {
    Arguments rest = arguments;
    const std::string name = text_or(rest.values[0], "", rendering);
    rest.values.erase(rest.values.begin());
    for (const Value& item : walked(value, rendering))
      items.push_back(apply_filter(name, item, rest, rendering));
  }
  return make_list(std::move(items), ListKind::kOnce, rendering);
}

/// Returns the items for which the test (of the attribute, the first argument) gives `wanted`; without a
/// test, the items' truth decides.
template <bool wanted, bool of_attribute>
Value select_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  Arguments rest = arguments;
  Value attribute;
  if (of_attribute) {
    if (rest.values.empty()) rendering.wrong("selectattr and rejectattr need the name of an attribute");
    attribute = rest.values[0];
    rest.values.erase(rest.values.begin());
  }
  std::string test;
  if (!rest.values.empty()) {
    test = text_or(rest.values[0], "", rendering);
    rest.values.erase(rest.values.begin());
  }
  std::vector<Value> items;
  for (const Value& item : walked(value, rendering)) {
    const Value tested = of_attribute ? attribute_of(item, attribute, rendering) : item;
    if ((test.empty() ? truth(tested) : apply_test(test, tested, rest, rendering)) == wanted)
      items.push_back(item);
  }
  return make_list(std::move(items), ListKind::kOnce, rendering);
}

Value sort_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind("sort", {"reverse", "case_sensitive", "attribute"}, 0, rendering);
  auto all = keyed(value, given[2], flag_or(given[1], false), rendering);
  const bool reverse = flag_or(given[0], false);
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    const int order = compare(a.first, b.first, rendering);
    return reverse ? order > 0 : order < 0;
  });
  std::vector<Value> items;
  for (auto& [key, item] : all) items.push_back(std::move(item));
  return make_list(std::move(items), ListKind::kList, rendering);
}

Value unique_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind("unique", {"case_sensitive", "attribute"}, 0, rendering);
  std::vector<Value> items, seen;
  for (const auto& [key, item] : keyed(value, given[1], flag_or(given[0], false), rendering)) {
    const bool known = std::any_of(seen.begin(), seen.end(), [&, key = key](const Value& other) {
      return equal(key, other, rendering);
    });
    if (known) continue;
    seen.push_back(key);
    items.push_back(item);
  }
  return make_list(std::move(items), ListKind::kOnce, rendering);
}

template <bool largest>
Value extreme_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind("min and max", {"case_sensitive", "attribute"}, 0, rendering);
  const auto all = keyed(value, given[1], flag_or(given[0], false), rendering);
  if (all.empty()) return Value::undefined("an item of an empty sequence");
  const auto* best = &all[0];
  for (const auto& one : all)
    if (const int order = compare(one.first, best->first, rendering); largest ? order > 0 : order < 0)
      best = &one;
  return best->second;
}

Value sum_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind("sum", {"attribute", "start"}, 0, rendering);
  Value total = given[1].value_or(Value::Data(int64_t{0}));
  for (const Value& item : items_of(value, rendering)) {
    const bool by_name = given[0] && !given[0]->is<None>();
    total = arithmetic("+", total, by_name ? attribute_of(item, *given[0], rendering) : item, rendering);
  }
  return total;
}

Value items_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  arguments.bind("items", {}, 0, rendering);
  std::vector<Value> pairs;
  if (!value.is<Undefined>() && !value.is<DictPtr>())
    rendering.wrong("items expects a dict, got {}", type_of(value));
  if (value.is<DictPtr>())
    for (const auto& [key, member] : value.dict().members)
      pairs.push_back(make_list({make_text(key, rendering), member}, ListKind::kTuple, rendering));
  return make_list(std::move(pairs), ListKind::kOnce, rendering);
}

Value dictsort_filter(const Value& value, const Arguments& arguments, Rendering& rendering) {
  const auto given = arguments.bind("dictsort", {"case_sensitive", "by", "reverse"}, 0, rendering);
  if (!value.is<DictPtr>()) rendering.wrong("dictsort expects a dict, got {}", type_of(value));
  const std::string by = text_or(given[1], "key", rendering);
  if (by != "key" && by != "value") rendering.wrong("dictsort sorts by \"key\" or \"value\", got \"{}\"", by);
  const Value pairs = items_filter(value, {}, rendering);
  Arguments how;
  how.named = {{"attribute", Value::Data(int64_t{by == "value"})}};
  if (given[0]) how.named.emplace_back("case_sensitive", *given[0]);
  if (given[2]) how.named.emplace_back("reverse", *given[2]);
  return sort_filter(pairs, how, rendering);
}

}  // namespace

const Filters& sequence_filters() {
  static const Filters filters = {
      {"count", length_filter},
      {"dictsort", dictsort_filter},
      {"first", first_filter},
      {"items", items_filter},
      {"join", join_filter},
      {"last", last_filter},
      {"length", length_filter},
      {"list", list_filter},
      {"map", map_filter},
      {"max", extreme_filter<true>},
      {"min", extreme_filter<false>},
      {"reject", select_filter<false, false>},
      {"rejectattr", select_filter<false, true>},
      {"reverse", reverse_filter},
      {"select", select_filter<true, false>},
      {"selectattr", select_filter<true, true>},
      {"sort", sort_filter},
      {"sum", sum_filter},
      {"unique", unique_filter},
  };
  return filters;
}

}  // namespace tycho::jinja
