// One function per level of precedence, from "a if b else c" down to literals.
#include "trainer/data/templates/expression_parser.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace tycho::jinja {

namespace {

template <class... Parts>
std::vector<ExprPtr> parts_of(Parts... parts) {
  std::vector<ExprPtr> all;
  (all.push_back(std::move(parts)), ...);
  return all;
}

std::string shown(const Token& token) {
  if (token.kind == TokenKind::kEnd) return "the end of the template";
  if (token.kind == TokenKind::kPrintEnd) return "}}";
  if (token.kind == TokenKind::kBlockEnd) return "%}";
  return (token.kind == TokenKind::kString ? "the text " : "") + token.text.substr(0, 40);
}

}  // namespace

ExpressionParser::ExpressionParser(std::vector<Token> tokens, Rendering& rendering)
    : tokens_(std::move(tokens)), rendering_(rendering) {
  rendering_.line = current().line;
}

bool ExpressionParser::is(TokenKind kind, std::string_view text) const {
  return current().kind == kind && current().text == text;
}

Token ExpressionParser::take() {
  Token token = current();
  if (at_ + 1 < tokens_.size()) ++at_;
  rendering_.line = current().line;
  return token;
}

bool ExpressionParser::skip_name(std::string_view text) {
  if (!is_name(text)) return false;
  take();
  return true;
}

bool ExpressionParser::skip_operator(std::string_view text) {
  if (!is_operator(text)) return false;
  take();
  return true;
}

std::string ExpressionParser::expect_name() {
  if (current().kind != TokenKind::kName) unexpected();
  return take().text;
}

void ExpressionParser::expect_operator(std::string_view text) {
  if (!is_operator(text)) rendering_.wrong("expected '{}', found {}", text, shown(current()));
  take();
}

void ExpressionParser::expect(TokenKind kind) {
  if (current().kind != kind) unexpected();
  take();
}

void ExpressionParser::unexpected() const { rendering_.wrong("unexpected {}", shown(current())); }

ExprPtr ExpressionParser::make(ExprKind kind, int line, std::vector<ExprPtr> parts, std::string name) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = line;
  for (const ExprPtr& part : parts)
    if (part) expr->depth = std::max(expr->depth, 1 + part->depth);
  if (expr->depth > 2 * kMaxNesting)
    rendering_.wrong("an expression is nested more than {} deep", 2 * kMaxNesting);
  expr->parts = std::move(parts);
  expr->name = std::move(name);
  return expr;
}

ExprPtr ExpressionParser::expression(bool with_condition) {
  const CallDepth depth(rendering_);
  ExprPtr value = disjunction();
  while (with_condition && is_name("if")) {
    const int line = take().line;
    ExprPtr condition = disjunction();
    ExprPtr otherwise = skip_name("else") ? expression() : nullptr;
    value = make(ExprKind::kCondition, line,
                 parts_of(std::move(condition), std::move(value), std::move(otherwise)));
  }
  return value;
}

ExprPtr ExpressionParser::tuple(bool with_condition, std::string_view end, bool in_parentheses) {
  const int line = current().line;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  while (true) {
    const bool ends = current().kind == TokenKind::kPrintEnd || current().kind == TokenKind::kBlockEnd ||
                      is_operator(")") || (!end.empty() && is_name(end));
    if (ends) break;
    items.push_back(expression(with_condition));
    if (!skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && items.size() == 1) return std::move(items[0]);
  if (!is_tuple && !in_parentheses) unexpected();
  return make(ExprKind::kTuple, line, std::move(items));
}

ExprPtr ExpressionParser::chain(ExprPtr (ExpressionParser::*operand)(),
                                std::initializer_list<std::string_view> operators) {
  ExprPtr left = (this->*operand)();
  while (std::any_of(operators.begin(), operators.end(), [&](auto text) { return is_operator(text); })) {
    const Token op = take();
    ExprPtr right = (this->*operand)();
    left = make(ExprKind::kArithmetic, op.line, parts_of(std::move(left), std::move(right)), op.text);
  }
  return left;
}

ExprPtr ExpressionParser::choice(ExprPtr (ExpressionParser::*operand)(), std::string_view word,
                                 ExprKind kind) {
  ExprPtr left = (this->*operand)();
  while (is_name(word)) {
    const int line = take().line;
    ExprPtr right = (this->*operand)();
    left = make(kind, line, parts_of(std::move(left), std::move(right)));
  }
  return left;
}

ExprPtr ExpressionParser::disjunction() {
  return choice(&ExpressionParser::conjunction, "or", ExprKind::kOr);
}

ExprPtr ExpressionParser::conjunction() { return choice(&ExpressionParser::negation, "and", ExprKind::kAnd); }

ExprPtr ExpressionParser::negation() {
  if (!is_name("not")) return comparison();
  const CallDepth depth(rendering_);
  const int line = take().line;
  return make(ExprKind::kNot, line, parts_of(negation()));
}

ExprPtr ExpressionParser::comparison() {
  const int line = current().line;
  std::vector<ExprPtr> operands;
  operands.push_back(sum());
  std::vector<std::string> operators;
  while (true) {
    const bool is_not_in =
        is_name("not") && tokens_[at_ + 1].kind == TokenKind::kName && tokens_[at_ + 1].text == "in";
    const bool compares = current().kind == TokenKind::kOperator &&
                          std::string_view("== != <= >= < >").find(current().text) != std::string_view::npos;
    if (is_not_in) {
      take();
      operators.push_back("not in");
    } else if (compares || is_name("in")) {
      operators.push_back(current().text);
    } else {
      break;
    }
    take();
    operands.push_back(sum());
  }
  if (operators.empty()) return std::move(operands[0]);
  ExprPtr made = make(ExprKind::kCompare, line, std::move(operands));
  made->names = std::move(operators);
  return made;
}

ExprPtr ExpressionParser::sum() { return chain(&ExpressionParser::concatenation, {"+", "-"}); }

ExprPtr ExpressionParser::concatenation() {
  const int line = current().line;
  std::vector<ExprPtr> operands;
  operands.push_back(product());
  while (skip_operator("~")) operands.push_back(product());
  if (operands.size() == 1) return std::move(operands[0]);
  return make(ExprKind::kConcat, line, std::move(operands));
}

ExprPtr ExpressionParser::product() { return chain(&ExpressionParser::power, {"*", "/", "//", "%"}); }

ExprPtr ExpressionParser::power() {
  ExprPtr value = unary();
  if (is_operator("**")) rendering_.wrong("the operator ** is not supported");
  return value;
}

ExprPtr ExpressionParser::unary(bool with_filters) {
  const CallDepth depth(rendering_);
  const int line = current().line;
  ExprPtr value;
  if (skip_operator("-")) {
    value = make(ExprKind::kNegate, line, parts_of(unary(false)));
  } else if (skip_operator("+")) {
    value = make(ExprKind::kPlus, line, parts_of(unary(false)));
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return with_filters ? tests_and_filters(std::move(value)) : std::move(value);
}

ExprPtr ExpressionParser::primary() {
  const int line = current().line;
  if (current().kind == TokenKind::kString) return strings();
  if (current().kind == TokenKind::kInteger || current().kind == TokenKind::kFloat) return number();
  if (is_operator("[")) return list();
  if (is_operator("{")) return dict();
  if (skip_operator("(")) {
    ExprPtr value = tuple(true, {}, true);
    expect_operator(")");
    return value;
  }
  if (current().kind != TokenKind::kName) unexpected();
  const std::string name = take().text;
  ExprPtr value = make(ExprKind::kConstant, line, {});
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    value->value = Value::Data(name[0] == 't' || name[0] == 'T');
  } else if (name != "none" && name != "None") {
    value->kind = ExprKind::kName;
    value->name = name;
  }
  return value;
}

ExprPtr ExpressionParser::number() {
  const Token token = take();
  ExprPtr value = make(ExprKind::kConstant, token.line, {});
  const char *begin = token.text.data(), *end = begin + token.text.size();
  if (token.kind == TokenKind::kInteger) {
    int64_t integer = 0;
    if (std::from_chars(begin, end, integer).ec != std::errc())
      rendering_.wrong("the number {} is too large", token.text);
    value->value = Value::Data(integer);
  } else {
    double real = 0;
    if (std::from_chars(begin, end, real).ec != std::errc())
      rendering_.wrong("the number {} is too large or too small", token.text);
    value->value = Value::Data(real);
  }
  return value;
}

ExprPtr ExpressionParser::strings() {
  ExprPtr value = make(ExprKind::kConstant, current().line, {});
  std::string text;
  while (current().kind == TokenKind::kString) text += take().text;
  value->value = Value(std::move(text));
  return value;
}

ExprPtr ExpressionParser::list() {
  const int line = take().line;
  std::vector<ExprPtr> items;
  while (!is_operator("]")) {
    if (!items.empty()) expect_operator(",");
    if (is_operator("]")) break;
    items.push_back(expression());
  }
  take();
  return make(ExprKind::kList, line, std::move(items));
}

ExprPtr ExpressionParser::dict() {
  const int line = take().line;
  std::vector<ExprPtr> items;
  while (!is_operator("}")) {
    if (!items.empty()) expect_operator(",");
    if (is_operator("}")) break;
    items.push_back(expression());
    expect_operator(":");
    items.push_back(expression());
  }
  take();
  return make(ExprKind::kDict, line, std::move(items));
}

ExprPtr ExpressionParser::postfix(ExprPtr value) {
  while (true) {
    const int line = current().line;
    if (skip_operator(".")) {
      if (current().kind == TokenKind::kInteger) {
        ExprPtr key = number();
        value = make(ExprKind::kSubscript, line, parts_of(std::move(value), std::move(key)));
      } else {
        value = make(ExprKind::kAttribute, line, parts_of(std::move(value)), expect_name());
      }
    } else if (is_operator("[")) {
      value = subscript(std::move(value));
    } else if (is_operator("(")) {
      value = make(ExprKind::kCall, line, parts_of(std::move(value)));
      arguments(*value);
    } else {
      return value;
    }
  }
}

ExprPtr ExpressionParser::subscript(ExprPtr value) {
  const int line = take().line;
  ExprPtr first = is_operator(":") ? nullptr : expression();
  if (first && !is_operator(":")) {
    expect_operator("]");
    return make(ExprKind::kSubscript, line, parts_of(std::move(value), std::move(first)));
  }
  ExprPtr end, step;
  expect_operator(":");
  if (!is_operator(":") && !is_operator("]")) end = expression();
  if (skip_operator(":") && !is_operator("]")) step = expression();
  expect_operator("]");
  return make(ExprKind::kSlice, line,
              parts_of(std::move(value), std::move(first), std::move(end), std::move(step)));
}

ExprPtr ExpressionParser::tests_and_filters(ExprPtr value) {
  while (true) {
    if (is_operator("|")) {
      value = filters(std::move(value));
    } else if (is_name("is")) {
      value = test(std::move(value));
    } else if (is_operator("(")) {
      value = make(ExprKind::kCall, current().line, parts_of(std::move(value)));
      arguments(*value);
    } else {
      return value;
    }
  }
}

ExprPtr ExpressionParser::filters(ExprPtr value) {
  while (skip_operator("|")) {
    const int line = current().line;
    value = make(ExprKind::kFilter, line, parts_of(std::move(value)), expect_name());
    if (is_operator("(")) arguments(*value);
  }
  return value;
}

ExprPtr ExpressionParser::test(ExprPtr value) {
  const int line = take().line;
  const bool negated = skip_name("not");
  value = make(ExprKind::kTest, line, parts_of(std::move(value)), expect_name());
  const bool has_argument = current().kind == TokenKind::kName || current().kind == TokenKind::kString ||
                            current().kind == TokenKind::kInteger || current().kind == TokenKind::kFloat ||
                            is_operator("[") || is_operator("{");
  if (is_operator("(")) {
    arguments(*value);
  } else if (is_name("is")) {
    rendering_.wrong("tests cannot follow each other: write \"and\" between them");
  } else if (has_argument && !is_name("else") && !is_name("or") && !is_name("and")) {
    value->parts.push_back(postfix(primary()));
  }
  return negated ? make(ExprKind::kNot, line, parts_of(std::move(value))) : std::move(value);
}

void ExpressionParser::arguments(Expr& call) {
  expect_operator("(");
  bool is_first = true, has_spread = false;
  while (!is_operator(")")) {
    if (!is_first) expect_operator(",");
    if (is_operator(")")) break;
    is_first = false;
    if (is_operator("**")) rendering_.wrong("arguments with ** are not supported");
    if (is_operator("*") && !has_spread) {
      has_spread = true;
      const int line = take().line;
      call.parts.push_back(make(ExprKind::kSpread, line, parts_of(expression())));
      continue;
    }
    const Token& next = tokens_[std::min(at_ + 1, tokens_.size() - 1)];
    if (current().kind == TokenKind::kName && next.kind == TokenKind::kOperator && next.text == "=") {
      std::string name = take().text;
      take();
      call.named.emplace_back(std::move(name), expression());
    } else {
      if (!call.named.empty() || has_spread)
        rendering_.wrong("an argument without a name follows one with a name, or with *");
      call.parts.push_back(expression());
    }
  }
  take();
}

}  // namespace tycho::jinja
