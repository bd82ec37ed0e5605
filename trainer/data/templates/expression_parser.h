// Parses expressions with Jinja's precedence, which differs from Python's in places.
#pragma once
#include <string_view>
#include <vector>

#include "trainer/data/templates/lexer.h"
#include "trainer/data/templates/rendering.h"
#include "trainer/data/templates/syntax.h"

namespace tycho::jinja {

/// Cursor over tokens. Every method throws Error (kUnusable) with the line of what it cannot read.
class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, Rendering& rendering);

  /// Reads an expression. Without `with_condition`, the name "if" ends it.
  ExprPtr expression(bool with_condition = true);
  /// Reads an expression, or a tuple if commas follow. The name `end` ends it.
  ExprPtr tuple(bool with_condition, std::string_view end = {}, bool in_parentheses = false);
  /// Reads "| name(…) | …" applied to `value`, which may be null.
  ExprPtr filters(ExprPtr value);

  const Token& current() const { return tokens_[at_]; }
  bool is(TokenKind kind, std::string_view text) const;
  bool is_operator(std::string_view text) const { return is(TokenKind::kOperator, text); }
  bool is_name(std::string_view text) const { return is(TokenKind::kName, text); }
  Token take();
  bool skip_name(std::string_view text);
  bool skip_operator(std::string_view text);
  std::string expect_name();
  void expect_operator(std::string_view text);
  void expect(TokenKind kind);
  [[noreturn]] void unexpected() const;
  Rendering& rendering() const { return rendering_; }

 private:
  ExprPtr make(ExprKind kind, int line, std::vector<ExprPtr> parts, std::string name = {});
  ExprPtr choice(ExprPtr (ExpressionParser::*operand)(), std::string_view word, ExprKind kind);
  ExprPtr disjunction();
  ExprPtr conjunction();
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool with_filters = true);
  ExprPtr primary();
  ExprPtr number();
  ExprPtr strings();
  ExprPtr list();
  ExprPtr dict();
  ExprPtr postfix(ExprPtr value);
  ExprPtr subscript(ExprPtr value);
  ExprPtr tests_and_filters(ExprPtr value);
  ExprPtr test(ExprPtr value);
  void arguments(Expr& call);
  ExprPtr chain(ExprPtr (ExpressionParser::*operand)(), std::initializer_list<std::string_view> operators);

  std::vector<Token> tokens_;
  Rendering& rendering_;
  size_t at_ = 0;
};

}  // namespace tycho::jinja
