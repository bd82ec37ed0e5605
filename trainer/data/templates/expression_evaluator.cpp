// One case per kind of expression.
#include "trainer/data/templates/expression_evaluator.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "trainer/data/templates/filters.h"
#include "trainer/data/templates/methods.h"
#include "trainer/data/templates/operators.h"
#include "trainer/data/templates/python_text.h"
#include "trainer/data/templates/value_tests.h"

namespace tycho::jinja {
namespace {

Value loop_member(const Loop& loop, std::string_view name, const Rendering& rendering) {
  const auto number = [](size_t n) { return Value(Value::Data(static_cast<int64_t>(n))); };
  const size_t size = loop.items.size();
  if (name == "index") return number(loop.index + 1);
  if (name == "index0") return number(loop.index);
  if (name == "revindex") return number(size - loop.index);
  if (name == "revindex0") return number(size - loop.index - 1);
  if (name == "first") return Value::Data(loop.index == 0);
  if (name == "last") return Value::Data(loop.index + 1 == size);
  if (name == "length") return number(size);
  // Depth of recursive loops, which are not supported.
  if (name == "depth") return number(1);
  if (name == "depth0") return number(0);
  if (name == "previtem")
    return loop.index == 0 ? Value::undefined("loop.previtem") : loop.items[loop.index - 1];
  if (name == "nextitem")
    return loop.index + 1 == size ? Value::undefined("loop.nextitem") : loop.items[loop.index + 1];
  rendering.wrong("loop.{} is not supported", name);
}

}  // namespace

Value Scopes::find(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto found = scope->find(name); found != scope->end()) return found->second;
  return Value::undefined("'" + std::string(name) + "'");
}

std::vector<Scopes::Scope> Scopes::hide_inner() {
  std::vector<Scope> inner(std::make_move_iterator(scopes_.begin() + 2),
                           std::make_move_iterator(scopes_.end()));
  scopes_.resize(2);
  return inner;
}

void Scopes::restore(std::vector<Scope> inner) {
  scopes_.resize(2);
  std::move(inner.begin(), inner.end(), std::back_inserter(scopes_));
}

Value ExpressionEvaluator::evaluate(const Expr& expr) {
  rendering_.line = expr.line;
  rendering_.charge(kStepEffort);
  const CallDepth depth(rendering_);
  return evaluate_kind(expr);
}

Value ExpressionEvaluator::evaluate_on(const Expr& filters, const Value& text) {
  piped_ = text;
  return evaluate(filters);
}

Value ExpressionEvaluator::part(const Expr& expr, size_t i) {
  Value value = expr.parts[i] ? evaluate(*expr.parts[i]) : Value();
  rendering_.line = expr.line;
  return value;
}

Value ExpressionEvaluator::evaluate_kind(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kConstant: return expr.value;
    case ExprKind::kName: return scopes_.find(expr.name);
    case ExprKind::kTuple: return evaluate_list(expr, ListKind::kTuple);
    case ExprKind::kList: return evaluate_list(expr, ListKind::kList);
    case ExprKind::kDict: return evaluate_dict(expr);
    case ExprKind::kCondition:
      if (truth(part(expr, 0))) return part(expr, 1);
      return expr.parts[2] ? part(expr, 2) : Value::undefined("an if without else");
    case ExprKind::kOr: {
      Value left = part(expr, 0);
      return truth(left) ? left : part(expr, 1);
    }
    case ExprKind::kAnd: {
      Value left = part(expr, 0);
      return truth(left) ? part(expr, 1) : left;
    }
    case ExprKind::kNot: return Value::Data(!truth(part(expr, 0)));
    case ExprKind::kCompare: return Value::Data(evaluate_comparison(expr));
    case ExprKind::kArithmetic: {
      const Value left = part(expr, 0);
      return arithmetic(expr.name, left, part(expr, 1), rendering_);
    }
    case ExprKind::kConcat: return concatenation(expr);
    case ExprKind::kNegate:
    case ExprKind::kPlus: return sign(expr);
    case ExprKind::kAttribute: return attribute(part(expr, 0), expr.name);
    case ExprKind::kSubscript: {
      const Value value = part(expr, 0);
      return subscript(value, part(expr, 1), rendering_);
    }
    case ExprKind::kSlice: {
      const Value value = part(expr, 0), first = part(expr, 1), end = part(expr, 2);
      return slice(value, first, end, part(expr, 3), rendering_);
    }
    case ExprKind::kCall: return call(expr);
    case ExprKind::kFilter: {
      const Value value = expr.parts[0] ? part(expr, 0) : piped_;
      return apply_filter(expr.name, value, arguments_of(expr), rendering_);
    }
    case ExprKind::kTest: {
      const Value value = part(expr, 0);
      return Value::Data(apply_test(expr.name, value, arguments_of(expr), rendering_));
    }
    case ExprKind::kSpread: return part(expr, 0);
  }
  return {};
}

Value ExpressionEvaluator::evaluate_list(const Expr& expr, ListKind kind) {
  std::vector<Value> items;
  for (size_t i = 0; i < expr.parts.size(); ++i) items.push_back(part(expr, i));
  return make_list(std::move(items), kind, rendering_);
}

Value ExpressionEvaluator::evaluate_dict(const Expr& expr) {
  std::vector<std::pair<std::string, Value>> members;
  for (size_t i = 0; i < expr.parts.size(); i += 2) {
    const Value key = part(expr, i);
    if (!key.is_text()) rendering_.wrong("keys of dicts must be texts, got {}", type_of(key));
    members.emplace_back(key.text(), part(expr, i + 1));
  }
  return make_dict(std::move(members), rendering_);
}

bool ExpressionEvaluator::evaluate_comparison(const Expr& expr) {
  Value left = part(expr, 0);
  for (size_t i = 0; i < expr.names.size(); ++i) {
    Value right = part(expr, i + 1);
    if (!compares(expr.names[i], left, right, rendering_)) return false;
    left = std::move(right);
  }
  return true;
}

Value ExpressionEvaluator::concatenation(const Expr& expr) {
  std::string text;
  for (size_t i = 0; i < expr.parts.size(); ++i) text += printed(part(expr, i), rendering_);
  return make_text(std::move(text), rendering_);
}

Value ExpressionEvaluator::sign(const Expr& expr) {
  const Value value = part(expr, 0);
  if (!value.is_number()) rendering_.wrong("a sign expects a number, got {}", type_of(value));
  if (expr.kind == ExprKind::kNegate) {
    if (value.is<double>()) return Value::Data(-value.as<double>());
    return arithmetic("-", Value::Data(int64_t{0}), value, rendering_);
  }
  return value.is<bool>() ? Value(Value::Data(value.integer())) : value;
}

Value ExpressionEvaluator::attribute(const Value& value, const std::string& name) {
  if (value.is<Undefined>())
    rendering_.wrong("{} is undefined, which has no .{}", value.as<Undefined>().what, name);
  if (value.is<std::shared_ptr<Loop>>()) {
    if (name == "cycle") rendering_.wrong("loop.cycle must be called");
    return loop_member(*value.as<std::shared_ptr<Loop>>(), name, rendering_);
  }
  if (value.is<Namespace*>()) {
    for (const auto& [key, member] : value.as<Namespace*>()->members)
      if (key == name) return member;
    return Value::undefined("'" + name + "' of a namespace");
  }
  if (has_method(value, name)) rendering_.wrong("the method {} must be called: write {}()", name, name);
  return subscript(value, Value(name), rendering_);
}

Arguments ExpressionEvaluator::arguments_of(const Expr& expr) {
  Arguments arguments;
  for (size_t i = 1; i < expr.parts.size(); ++i) {
    if (expr.parts[i]->kind == ExprKind::kSpread) {
      for (Value& item : items_of(part(expr, i), rendering_)) arguments.values.push_back(std::move(item));
    } else {
      arguments.values.push_back(part(expr, i));
    }
  }
  for (const auto& [name, value] : expr.named) arguments.named.emplace_back(name, evaluate(*value));
  rendering_.line = expr.line;
  return arguments;
}

Value ExpressionEvaluator::call(const Expr& expr) {
  const Expr& callee = *expr.parts[0];
  if (callee.kind == ExprKind::kAttribute) {
    const Value value = part(callee, 0);
    if (value.is<std::shared_ptr<Loop>>() && callee.name == "cycle") {
      const Arguments arguments = arguments_of(expr);
      if (arguments.values.empty()) rendering_.wrong("loop.cycle needs values");
      return arguments.values[value.as<std::shared_ptr<Loop>>()->index % arguments.values.size()];
    }
    if (value.is_text() || value.is<DictPtr>())
      return call_method(value, callee.name, arguments_of(expr), rendering_);
    rendering_.wrong("the method {} of {} is not supported", callee.name, type_of(value));
  }
  const Value function = part(expr, 0);
  if (function.is<Undefined>()) rendering_.wrong("there is no function {}", function.as<Undefined>().what);
  if (function.is<const Statement*>())
    return call_macro_(*function.as<const Statement*>(), arguments_of(expr));
  if (!function.is<Function>()) rendering_.wrong("a {} cannot be called", type_of(function));
  return call_function(function.as<Function>(), arguments_of(expr));
}

Value ExpressionEvaluator::call_function(Function function, const Arguments& arguments) {
  switch (function) {
    case Function::kRaiseException: {
      const Value message = *arguments.bind("raise_exception", {"message"}, 1, rendering_)[0];
      rendering_.wrong("the template refuses the conversation: {}", printed(message, rendering_));
    }
    case Function::kStrftimeNow: return formatted_date(arguments);
    case Function::kRange: return make_range(arguments);
    case Function::kNamespace: return make_namespace(arguments);
    case Function::kDict:
      if (!arguments.values.empty()) rendering_.wrong("dict takes arguments by name only");
      return make_dict(arguments.named, rendering_);
  }
  return {};
}

Value ExpressionEvaluator::make_range(const Arguments& arguments) {
  const auto given = arguments.bind("range", {"start", "stop", "step"}, 1, rendering_);
  const int64_t start = given[1] ? integer_or(given[0], 0, rendering_) : 0;
  const int64_t stop = integer_or(given[1] ? given[1] : given[0], 0, rendering_);
  const int64_t step = integer_or(given[2], 1, rendering_);
  if (step == 0) rendering_.wrong("the step of range is 0");
  std::vector<Value> items;
  for (int64_t at = start; step > 0 ? at < stop : at > stop;) {
    // Limit of Jinja's sandbox.
    if (items.size() == 100'000) rendering_.wrong("range is too long: expected at most 100000 numbers");
    items.push_back(Value::Data(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return make_list(std::move(items), ListKind::kList, rendering_);
}

Value ExpressionEvaluator::make_namespace(const Arguments& arguments) {
  Namespace* made = scopes_.make_namespace();
  if (arguments.values.size() > 1 || (!arguments.values.empty() && !arguments.values[0].is<DictPtr>()))
    rendering_.wrong("namespace takes a dict, and members by name");
  if (!arguments.values.empty()) made->members = arguments.values[0].dict().members;
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find_if(made->members.begin(), made->members.end(),
                                    [&, name = name](const auto& member) { return member.first == name; });
    if (found == made->members.end()) {
      made->members.emplace_back(name, value);
    } else {
      found->second = value;
    }
  }
  rendering_.charge(64 + 64 * std::ssize(made->members));
  return Value::Data(made);
}

Value ExpressionEvaluator::formatted_date(const Arguments& arguments) {
  const std::string format =
      text_or(arguments.bind("strftime_now", {"format"}, 1, rendering_)[0], "", rendering_);
  if (!date_) rendering_.wrong("strftime_now needs a date: set template_date");
  for (size_t at = format.find('%'); at != format.npos; at = format.find('%', at + 2)) {
    const char c = at + 1 < format.size() ? format[at + 1] : ' ';
    if (std::string_view("aAbBdmyYjHIMSp%").find(c) == std::string_view::npos)
      rendering_.wrong("the format %{} of strftime_now is not supported", c);
  }
  if (format.empty()) return make_text("", rendering_);
  std::tm time = {};
  time.tm_year = date_->year - 1900;
  time.tm_mon = date_->month - 1;
  time.tm_mday = date_->day;
  time.tm_isdst = -1;
  timegm(&time);  // fills in the day of the week and of the year
  std::array<char, 1024> buffer;
  const size_t size = std::strftime(buffer.data(), buffer.size(), format.c_str(), &time);
  if (size == 0) rendering_.wrong("the format of strftime_now is too long");
  return make_text(std::string(buffer.data(), size), rendering_);
}

}  // namespace tycho::jinja
