// Evaluates expressions.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/data/templates/arguments.h"
#include "trainer/data/templates/rendering.h"
#include "trainer/data/templates/syntax.h"
#include "trainer/data/templates/value.h"

namespace tycho::jinja {

struct Date {
  int year = 2000, month = 1, day = 1;
  bool operator==(const Date&) const = default;
};

/// Names and their values, the innermost scope last. Owns the namespaces of the template.
class Scopes {
 public:
  using Scope = std::map<std::string, Value, std::less<>>;
  Value find(std::string_view name) const;
  void set(const std::string& name, Value value) { scopes_.back()[name] = std::move(value); }
  void open() { scopes_.emplace_back(); }
  void close() { scopes_.pop_back(); }
  /// Removes and returns all scopes but the first two: the names given by the template's caller, and the
  /// template's outermost names.
  std::vector<Scope> hide_inner();
  void restore(std::vector<Scope> inner);
  Namespace* make_namespace() { return &namespaces_.emplace_back(); }

 private:
  std::vector<Scope> scopes_ = {{}};
  std::deque<Namespace> namespaces_;
};

class ExpressionEvaluator {
 public:
  using CallMacro = std::function<Value(const Statement& macro, const Arguments& arguments)>;
  /// strftime_now formats `date`; without a date, that function does not exist. Borrows scopes and rendering.
  ExpressionEvaluator(Scopes& scopes, std::optional<Date> date, CallMacro call_macro, Rendering& rendering)
      : scopes_(scopes), date_(date), call_macro_(std::move(call_macro)), rendering_(rendering) {}

  Value evaluate(const Expr& expr);
  /// Applies the filters of {% set x | filter %} to the text of its body.
  Value evaluate_on(const Expr& filters, const Value& text);

 private:
  Value evaluate_kind(const Expr& expr);
  Value part(const Expr& expr, size_t i);
  Value evaluate_list(const Expr& expr, ListKind kind);
  Value evaluate_dict(const Expr& expr);
  bool evaluate_comparison(const Expr& expr);
  Value concatenation(const Expr& expr);
  Value sign(const Expr& expr);
  Value attribute(const Value& value, const std::string& name);
  Value call(const Expr& expr);
  Value call_function(Function function, const Arguments& arguments);
  Value make_range(const Arguments& arguments);
  Value make_namespace(const Arguments& arguments);
  Value formatted_date(const Arguments& arguments);
  Arguments arguments_of(const Expr& expr);

  Scopes& scopes_;
  std::optional<Date> date_;
  CallMacro call_macro_;
  Rendering& rendering_;
  Value piped_;
};

}  // namespace tycho::jinja
