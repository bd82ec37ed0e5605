// Cuts texts at ${...}, and writes values as Python prints them.
#include "bindings/import/interpolation_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace tycho {
namespace {

using Kind = DocScalar::Kind;

/// Returns the position of the brace that closes the ${ at `open`; npos for none.
size_t closing(const std::string& text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text.compare(i, 2, "${") == 0) {
      ++depth, ++i;
    } else if (text[i] == '}' && --depth == 0) {
      return i;
    }
  }
  return std::string::npos;
}

void add_text(std::vector<Piece>& pieces, const std::string& text) {
  if (text.empty()) return;
  if (!pieces.empty() && !pieces.back().is_path)
    pieces.back().text += text;
  else
    pieces.push_back({false, text});
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// Returns Python's repr() of a float: the shortest digits that read back as the same value.
std::string python_float(double x) {
  if (!std::isfinite(x)) return std::isnan(x) ? "nan" : x < 0 ? "-inf" : "inf";
  const double size = std::abs(x);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, x,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

double float_of(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  std::erase(text, '_');
  if (const size_t dot = text.find(".inf"); dot != std::string::npos) text.erase(dot, 1);
  if (text == ".nan") text = "nan";
  return std::strtod(text.c_str(), nullptr);
}

std::string python_repr(const DocNode& node) {
  if (!node.is_scalar()) return python_text(node);
  const DocScalar scalar = read_scalar(node);
  if (!scalar.is(Kind::kText)) return python_text(scalar);
  const bool has_single = scalar.text.find('\'') != std::string::npos;
  const char quote = has_single && scalar.text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : scalar.text) {
    if (c == quote || c == '\\') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out + quote;
}

}  // namespace

std::vector<Piece> pieces_of(const std::string& text) {
  std::vector<Piece> pieces;
  size_t at = 0;
  while (at < text.size()) {
    const size_t open = std::min(text.find("${", at), text.size());
    size_t slashes = 0;
    while (open < text.size() && open - slashes > at && text[open - slashes - 1] == '\\') ++slashes;
    add_text(pieces, text.substr(at, open - slashes - at) + std::string(slashes / 2, '\\'));
    if (open == text.size()) break;
    if (slashes % 2 == 1) {
      add_text(pieces, "${");
      at = open + 2;
      continue;
    }
    const size_t close = closing(text, open);
    if (close == std::string::npos) {
      add_text(pieces, text.substr(open));
      break;
    }
    pieces.push_back({true, trimmed(text.substr(open + 2, close - open - 2))});
    at = close + 1;
  }
  return pieces;
}

int nesting_of(const std::string& text) {
  int depth = 0, deepest = 0;
  size_t slashes = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "${") == 0) {
      if (depth > 0 || slashes % 2 == 0) deepest = std::max(deepest, ++depth);
      ++i;
    } else if (text[i] == '}' && depth > 0) {
      --depth;
    }
    slashes = text[i] == '\\' ? slashes + 1 : 0;
  }
  return deepest;
}

bool is_unclosed(const std::string& text) {
  for (size_t at = text.find("${"); at != std::string::npos; at = text.find("${", at + 2)) {
    size_t slashes = 0;
    while (at > slashes && text[at - slashes - 1] == '\\') ++slashes;
    if (slashes % 2 == 0 && closing(text, at) == std::string::npos) return true;
  }
  return false;
}

std::optional<std::string> whole_reference(const DocNode& node) {
  if (!node.is_scalar()) return std::nullopt;
  const std::vector<Piece> pieces = pieces_of(node.text);
  if (pieces.size() != 1 || !pieces[0].is_path) return std::nullopt;
  return pieces[0].text;
}

std::string absolute_path(const std::string& path, const std::string& here) {
  if (path.find(':') != std::string::npos) return path;
  std::string rest = path, base;
  if (const size_t dots = std::min(path.find_first_not_of('.'), path.size()); dots > 0) {
    base = here;
    for (size_t i = 0; i < dots; ++i) {
      if (base.empty()) return path;  // above the top: leads nowhere
      const size_t cut = base.rfind('.');
      base = cut == std::string::npos ? "" : base.substr(0, cut);
    }
    rest = path.substr(dots);
  }
  std::string out;
  for (const char c : rest) {
    if (c == ']') continue;
    if (c == '[' && (out.empty() || out.back() == '.')) continue;
    out += c == '[' ? '.' : c;
  }
  return base.empty() ? out : base + "." + out;
}

std::string with_absolute_paths(const std::string& text, const std::string& here) {
  std::string out;
  size_t at = 0;
  while (true) {
    const size_t open = text.find("${", at);
    if (open == std::string::npos) break;
    size_t slashes = 0;
    while (open > slashes && text[open - slashes - 1] == '\\') ++slashes;
    const size_t close = slashes % 2 == 1 ? std::string::npos : closing(text, open);
    if (close == std::string::npos) {
      out += text.substr(at, open + 2 - at);
      at = open + 2;
      continue;
    }
    const std::string inside = with_absolute_paths(trimmed(text.substr(open + 2, close - open - 2)), here);
    out += text.substr(at, open - at) + "${" + absolute_path(inside, here) + "}";
    at = close + 1;
  }
  return out + text.substr(at);
}

std::string python_text(const DocScalar& scalar) {
  switch (scalar.kind) {
    case Kind::kNull: return "None";
    case Kind::kBool: return scalar.text == "true" ? "True" : "False";
    case Kind::kNumber: return python_float(float_of(scalar.text));
    case Kind::kInteger:
    case Kind::kText: break;
  }
  return scalar.text;
}

std::string python_text(const DocNode& node) {
  if (node.is_scalar()) return python_text(read_scalar(node));
  std::vector<std::string> parts;
  for (const DocNode& item : node.items) parts.push_back(python_repr(item));
  for (const auto& [key, value] : node.entries) parts.push_back("'" + key + "': " + python_repr(value));
  const std::string inside = fmt::format("{}", fmt::join(parts, ", "));
  return node.is_list() ? "[" + inside + "]" : "{" + inside + "}";
}

}  // namespace tycho
