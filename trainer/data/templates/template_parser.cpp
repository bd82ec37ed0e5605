// Parses the statements that chat templates use; refuses Jinja's other statements by name.
#include "trainer/data/templates/template_parser.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "trainer/data/templates/expression_parser.h"

namespace tycho::jinja {
namespace {

class TemplateParser {
 public:
  TemplateParser(std::vector<Token> tokens, Rendering& rendering)
      : in_(std::move(tokens), rendering), rendering_(rendering) {}

  std::vector<Statement> whole() {
    std::vector<Statement> body = statements({});
    if (in_.current().kind != TokenKind::kEnd) in_.unexpected();
    return body;
  }

 private:
  /// Reads statements up to the block that begins with one of `ends`, whose name is not taken; to the end of
  /// the template if `ends` is empty.
  std::vector<Statement> statements(std::initializer_list<std::string_view> ends) {
    if (++nesting_ > kMaxNesting) rendering_.wrong("blocks are nested more than {} deep", kMaxNesting);
    const int line = in_.current().line;
    std::vector<Statement> body;
    while (true) {
      Statement made;
      made.line = in_.current().line;
      const TokenKind kind = in_.current().kind;
      if (kind == TokenKind::kEnd) {
        rendering_.line = line;
        if (ends.size() > 0) rendering_.wrong("a block is not closed: write {{% {} %}}", *(ends.end() - 1));
        break;
      }
      const Token token = in_.take();
      if (kind == TokenKind::kText) {
        made.text = token.text;
      } else if (kind == TokenKind::kPrint) {
        made.kind = StatementKind::kPrint;
        made.expr = in_.tuple(true);
        // Nothing is escaped here, so `safe` has no effect.
        while (made.expr->kind == ExprKind::kFilter && made.expr->name == "safe" &&
               made.expr->parts.size() == 1 && made.expr->named.empty())
          made.expr = ExprPtr(std::move(made.expr->parts[0]));
        in_.expect(TokenKind::kPrintEnd);
      } else {
        if (std::any_of(ends.begin(), ends.end(), [&](auto end) { return in_.is_name(end); })) break;
        read_statement(made);
        in_.expect(TokenKind::kBlockEnd);
      }
      body.push_back(std::move(made));
    }
    --nesting_;
    return body;
  }

  /// Reads the statements between the end of this block and the block `end`, whose name is taken.
  std::vector<Statement> body_until(std::string_view end) {
    in_.expect(TokenKind::kBlockEnd);
    std::vector<Statement> body = statements({end});
    in_.take();
    return body;
  }

  void read_statement(Statement& made) {
    const std::string name = in_.expect_name();
    if (name == "if") return read_if(made);
    if (name == "for") return read_for(made);
    if (name == "set") return read_set(made);
    if (name == "macro") return read_macro(made);
    if (name == "generation") {
      made.kind = StatementKind::kBody;
      made.body = body_until("endgeneration");
    } else if (name == "break" || name == "continue") {
      if (loops_ == 0) rendering_.wrong("{} is not in a for", name);
      made.kind = name == "break" ? StatementKind::kBreak : StatementKind::kContinue;
    } else {
      rendering_.wrong(
          "the statement {} is not supported: templates may have if, for, set, macro, break, continue and "
          "generation",
          name);
    }
  }

  void read_if(Statement& made) {
    made.kind = StatementKind::kIf;
    while (true) {
      Statement branch;
      branch.kind = StatementKind::kBranch;
      branch.line = in_.current().line;
      branch.expr = in_.tuple(false);
      in_.expect(TokenKind::kBlockEnd);
      branch.body = statements({"elif", "else", "endif"});
      made.body.push_back(std::move(branch));
      if (in_.skip_name("elif")) continue;
      if (in_.skip_name("else")) {
        made.otherwise = body_until("endif");
      } else {
        in_.take();
      }
      return;
    }
  }

  void read_for(Statement& made) {
    made.kind = StatementKind::kFor;
    read_targets(made);
    if (!in_.skip_name("in")) in_.unexpected();
    made.expr = in_.tuple(false, "recursive");
    if (in_.skip_name("if")) made.filter = in_.expression();
    if (in_.is_name("recursive")) rendering_.wrong("a recursive for is not supported");
    in_.expect(TokenKind::kBlockEnd);
    ++loops_;
    made.body = statements({"else", "endfor"});
    --loops_;
    if (in_.skip_name("else")) {
      made.otherwise = body_until("endfor");
    } else {
      in_.take();
    }
  }

  void read_set(Statement& made) {
    made.kind = StatementKind::kSet;
    read_targets(made);
    if (made.targets.size() == 1 && in_.skip_operator(".")) made.member = in_.expect_name();
    if (in_.skip_operator("=")) {
      made.expr = in_.tuple(true);
      return;
    }
    if (made.unpacks) in_.unexpected();
    made.kind = StatementKind::kSetBlock;
    made.expr = in_.filters(nullptr);
    made.body = body_until("endset");
  }

  void read_macro(Statement& made) {
    made.kind = StatementKind::kMacro;
    if (nesting_ > 1 && (loops_ > 0 || in_macro_))
      rendering_.wrong("a macro inside a for or a macro is not supported");
    made.text = in_.expect_name();
    in_.expect_operator("(");
    while (!in_.is_operator(")")) {
      if (!made.targets.empty()) in_.expect_operator(",");
      made.targets.push_back(in_.expect_name());
      if (in_.skip_operator("=")) {
        made.defaults.push_back(in_.expression());
      } else if (!made.defaults.empty()) {
        rendering_.wrong("a parameter without a default follows one with a default");
      }
    }
    in_.take();
    in_macro_ = true;
    made.body = body_until("endmacro");
    in_macro_ = false;
  }

  /// Reads "a", "a, b" or "(a, b)".
  void read_targets(Statement& made) {
    const bool in_parentheses = in_.skip_operator("(");
    while (true) {
      made.targets.push_back(in_.expect_name());
      if (!in_.skip_operator(",")) break;
      made.unpacks = true;
      if (in_.current().kind != TokenKind::kName || in_.is_name("in")) break;
    }
    if (in_parentheses) in_.expect_operator(")");
  }

  ExpressionParser in_;
  Rendering& rendering_;
  int nesting_ = 0, loops_ = 0;
  bool in_macro_ = false;
};

}  // namespace

std::vector<Statement> parse_template(std::string_view source, Rendering& rendering) {
  std::vector<Token> tokens = lex(source, rendering);
  return TemplateParser(std::move(tokens), rendering).whole();
}

}  // namespace tycho::jinja
