// One entry per test; those with an operand have several names.
#include "trainer/data/templates/value_tests.h"

#include <algorithm>
#include <map>
#include <string>

#include "trainer/data/templates/operators.h"
#include "trainer/data/templates/python_text.h"

namespace tycho::jinja {
namespace {

using Test = bool (*)(const Value& value);

bool is_sequence(const Value& value) {
  return value.is_text() || value.is<DictPtr>() || value.is<Undefined>() ||
         (value.is<ListPtr>() &&
          (value.list().kind == ListKind::kList || value.list().kind == ListKind::kTuple));
}

const std::map<std::string, Test, std::less<>>& plain_tests() {
  static const std::map<std::string, Test, std::less<>> tests = {
      {"defined", [](const Value& v) { return !v.is<Undefined>(); }},
      {"undefined", [](const Value& v) { return v.is<Undefined>(); }},
      {"none", [](const Value& v) { return v.is<None>(); }},
      {"string", [](const Value& v) { return v.is_text(); }},
      {"number", [](const Value& v) { return v.is_number(); }},
      {"integer", [](const Value& v) { return v.is<int64_t>(); }},
      {"float", [](const Value& v) { return v.is<double>(); }},
      {"boolean", [](const Value& v) { return v.is<bool>(); }},
      {"true", [](const Value& v) { return v.is<bool>() && v.as<bool>(); }},
      {"false", [](const Value& v) { return v.is<bool>() && !v.as<bool>(); }},
      {"mapping", [](const Value& v) { return v.is<DictPtr>(); }},
      {"sequence", is_sequence},
      {"iterable", [](const Value& v) { return is_sequence(v) || v.is<ListPtr>(); }},
      {"callable",
       [](const Value& v) { return v.is<Undefined>() || v.is<Function>() || v.is<const Statement*>(); }},
  };
  return tests;
}

const std::map<std::string, const char*, std::less<>>& operand_tests() {
  static const std::map<std::string, const char*, std::less<>> tests = {
      {"eq", "=="}, {"equalto", "=="}, {"ne", "!="},         {"lt", "<"},  {"lessthan", "<"},
      {"le", "<="}, {"gt", ">"},       {"greaterthan", ">"}, {"ge", ">="}, {"in", "in"},
  };
  return tests;
}

/// True if value % divisor == rest.
bool leaves(const Value& value, const Value& divisor, int64_t rest, Rendering& rendering) {
  return equal(arithmetic("%", value, divisor, rendering), Value::Data(rest), rendering);
}

bool has_case(const Value& value, bool upper, Rendering& rendering) {
  const std::string text = printed(value, rendering);
  const std::string cased = in_case(text, upper ? Case::kUpper : Case::kLower, rendering),
                    other = in_case(text, upper ? Case::kLower : Case::kUpper, rendering);
  return text == cased && cased != other;
}

}  // namespace

bool apply_test(std::string_view name, const Value& value, const Arguments& arguments, Rendering& rendering) {
  if (const auto found = plain_tests().find(name); found != plain_tests().end()) {
    arguments.bind(name, {}, 0, rendering);
    return found->second(value);
  }
  if (const auto found = operand_tests().find(name); found != operand_tests().end())
    return compares(found->second, value, *arguments.bind(name, {"other"}, 1, rendering)[0], rendering);
  if (name == "odd" || name == "even") {
    arguments.bind(name, {}, 0, rendering);
    return leaves(value, Value::Data(int64_t{2}), name == "odd" ? 1 : 0, rendering);
  }
  if (name == "divisibleby")
    return leaves(value, *arguments.bind(name, {"num"}, 1, rendering)[0], 0, rendering);
  if (name == "upper" || name == "lower") {
    arguments.bind(name, {}, 0, rendering);
    return has_case(value, name == "upper", rendering);
  }
  rendering.wrong("the test \"is {}\" is not supported", name);
}

}  // namespace tycho::jinja
