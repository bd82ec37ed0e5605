// Syntax tree of a template.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/templates/value.h"

namespace tycho::jinja {

enum class ExprKind {
  kConstant,
  kName,
  kTuple,
  kList,
  kDict,       // parts: key, value, key, value…
  kCondition,  // parts: condition, then, else or null
  kOr,
  kAnd,
  kNot,
  kCompare,     // parts: operands; `names`: the operators between them
  kArithmetic,  // `name`: the operator
  kConcat,
  kNegate,
  kPlus,
  kAttribute,  // `name` of parts[0]
  kSubscript,  // parts: value, key
  kSlice,      // parts: value, then first, end and step or null
  kCall,       // parts: what is called, then arguments
  kFilter,     // parts: value, then arguments; the value is null at the start of {% set x | filter %}
  kTest,       // parts: value, then arguments
  kSpread,     // parts: a list whose items are arguments
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Expr {
  ExprKind kind = ExprKind::kConstant;
  int line = 1;
  int depth = 1;
  std::string name;
  Value value;  // value of a constant
  std::vector<ExprPtr> parts;
  std::vector<std::string> names;
  std::vector<std::pair<std::string, ExprPtr>> named;  // arguments by name
};

enum class StatementKind {
  kText,      // `text`
  kPrint,     // expr
  kIf,        // body: a kBranch for each condition; otherwise
  kBranch,    // expr, body
  kFor,       // targets, expr, filter, body, otherwise
  kSet,       // targets (with member: a member of a namespace), expr
  kSetBlock,  // targets (with member: a member of a namespace), body; expr: filters or null
  kMacro,     // text: its name; targets: parameters; defaults: defaults of the last parameters
  kBody,      // body: {% generation %}
  kBreak,
  kContinue,
};

struct Statement {
  StatementKind kind = StatementKind::kText;
  int line = 1;
  std::string text;
  ExprPtr expr, filter;
  std::vector<std::string> targets;
  bool unpacks = false;  // true if the value is unpacked into targets
  std::string member;
  std::vector<ExprPtr> defaults;
  std::vector<Statement> body, otherwise;
};

}  // namespace tycho::jinja
