// Splits a template into tokens, and trims white space with the settings that transformers uses.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/templates/rendering.h"

namespace tycho::jinja {

enum class TokenKind {
  kText,      // outside of tags
  kPrint,     // {{
  kPrintEnd,  // }}
  kBlock,     // {%
  kBlockEnd,  // %}
  kName,
  kString,  // `text` holds its value
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  int line = 1;
};

/// Returns the tokens of a template, the last one kEnd; comments are left out. White space is trimmed as by
/// Jinja with trim_blocks and lstrip_blocks: a line break after a block and white space before a block that
/// begins its line are removed; "-" removes all white space on its side, "+" keeps it. Throws Error
/// (kUnusable) with the line of what is not closed or not known.
std::vector<Token> lex(std::string_view source, Rendering& rendering);

}  // namespace tycho::jinja
